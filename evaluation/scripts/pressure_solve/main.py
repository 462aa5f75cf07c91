import sys

import torch

from flowlib.channel import Channel


def main(argv):
    frames = int(argv[1]) if len(argv) > 1 else 3000
    torch.manual_seed(9)
    channel = Channel(rows=192, columns=384)
    with torch.no_grad():
        for frame in range(frames):
            channel.step()
    print("sweeps in the last frame", channel.sweeps, "pressure", channel.pressure.abs().max().item())


if __name__ == "__main__":
    main(sys.argv)

import argparse

import torch

from paint.net import MuralNet
from paint.process import Process


def main():
    parser = argparse.ArgumentParser(description="paints murals with a diffusion model, tile after tile")
    parser.add_argument("--murals", type=int, default=150)
    parser.add_argument("--tiles", type=int, default=48)
    args = parser.parse_args()
    torch.manual_seed(44)
    net = MuralNet()
    net.load_state_dict({name: value * 0.9 for name, value in net.state_dict().items()})
    process = Process(torch.compile(net.eval()), steps=40)
    for number in range(args.murals):
        mural = process.sample((args.tiles, 144, 32))
        if number % 10 == 0:
            print(f"mural {number}: contrast {mural.std():.3f}", flush=True)


if __name__ == "__main__":
    main()

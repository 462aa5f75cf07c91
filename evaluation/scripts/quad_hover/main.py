import argparse

import torch

from flightkit.airframe import Airframe
from flightkit.loop import Hover, Telemetry


def main():
    parser = argparse.ArgumentParser(description="tunes hover gains on many simulated quadrotors")
    parser.add_argument("--ticks", type=int, default=12000)
    parser.add_argument("--craft", type=int, default=100000)
    args = parser.parse_args()
    torch.manual_seed(13)
    telemetry = Telemetry()
    hover = Hover(Airframe(), args.craft, callbacks=[telemetry])
    with torch.no_grad():
        for _ in range(args.ticks):
            hover.tick()
    print(f"highest rate {telemetry.highest:.3f}")


if __name__ == "__main__":
    main()

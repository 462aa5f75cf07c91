"""Steer a swarm of drones towards a moving beacon; a telemetry thread looks on."""
import argparse

import torch

from swarm import Pilot, Telemetry


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=20000)
    parser.add_argument("--drones", type=int, default=768)
    args = parser.parse_args()
    torch.manual_seed(13)
    pilot = Pilot().eval()
    telemetry = Telemetry()
    telemetry.attach(pilot, ("sense", "flock", "avoid", "thrust"))
    steer = torch.compile(pilot)
    with torch.inference_mode(), telemetry:
        state = torch.randn(args.drones, 64)
        for tick in range(args.ticks):
            beacon = torch.tensor([tick * 0.01]).sin()
            state = 0.98 * state + 0.02 * steer(state, beacon)
    print("spread", state.std().item(), "after", telemetry.seen, "rows of telemetry")


if __name__ == "__main__":
    main()

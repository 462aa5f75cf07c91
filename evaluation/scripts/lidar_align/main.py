"""Align lidar sweeps with a map by soft assignment."""
import argparse

import torch

from align import Aligner, Settings, sweeps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweeps", type=int, default=420)
    parser.add_argument("--rounds", type=int, default=25)
    args = parser.parse_args()
    torch.manual_seed(3)
    aligner = Aligner(Settings(rounds=args.rounds))
    drift = 0.0
    for number, (ground, sweep) in enumerate(sweeps(args.sweeps)):
        pose = aligner.align(sweep, ground)
        drift = max(drift, pose.residual)
        if number % 50 == 0:
            print(f"sweep {number}: residual {pose.residual:.4f} after {pose.rounds} rounds")
    print("worst residual", drift)


if __name__ == "__main__":
    main()

"""A controller for one joint, at the rate of the joint."""
import argparse

import torch


def control(state, target, gain):
    error = target - state
    return state + 0.01 * (gain * error - 0.1 * state)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=3000000)
    args = parser.parse_args()
    state = torch.zeros(6)
    target = torch.tensor([0.5, -0.2, 0.1, 0.9, -0.7, 0.3])
    gain = torch.full((6,), 2.0)
    with torch.no_grad():
        for _ in range(args.ticks):
            state = control(state, target, gain)
    print(state)


if __name__ == "__main__":
    main()

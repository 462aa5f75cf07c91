import argparse

import torch

from arm import Planner


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=40000)
    args = parser.parse_args()
    torch.manual_seed(0)
    planner = Planner(joints=96)
    compiled = torch.compile(planner.plan)
    state = torch.randn(256, 96)
    with torch.no_grad():
        for move in range(args.moves):
            if move % 40 == 0:
                planner.forget()
            state = compiled(state)
    print(state.norm().item())


if __name__ == "__main__":
    main()

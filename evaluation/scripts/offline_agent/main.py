"""Learn return quantiles from logged transitions."""
import argparse

import torch

from agentkit import Agent, Log


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=20000)
    parser.add_argument("--batch", type=int, default=192)
    return parser.parse_args()


def main():
    args = parse()
    torch.manual_seed(7)
    log = Log(rows=20000)
    agent = Agent(log)
    agent.fit(args.updates, args.batch)
    print("last score", f"{float(agent.score):.4f}")


if __name__ == "__main__":
    main()

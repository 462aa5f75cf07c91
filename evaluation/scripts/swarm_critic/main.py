import argparse

import torch

from swarm.critic import Critic
from swarm.flight import flights


def main():
    parser = argparse.ArgumentParser(description="judges the states of a swarm of drones")
    parser.add_argument("--batches", type=int, default=30000)
    parser.add_argument("--drones", type=int, default=4096)
    args = parser.parse_args()
    torch.manual_seed(21)
    critic = torch.compile(Critic(64).eval())
    total = torch.zeros(args.drones)
    with torch.no_grad():
        for state in flights(args.batches, args.drones, 64):
            total.lerp_(critic(state), 0.05)
    print(f"mean value {total.mean().item():.4f}")


if __name__ == "__main__":
    main()

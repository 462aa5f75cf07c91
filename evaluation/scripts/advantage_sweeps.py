"""Advantages of a recorded run of sixteen cart agents, swept backwards in time."""
import argparse
from dataclasses import dataclass

import torch


@dataclass
class Discounts:
    gamma: float = 0.99
    lam: float = 0.95


@torch.compile
def carry(advantage, delta, decay):
    return delta + decay * advantage


class Critic:
    def __init__(self, horizon, agents):
        self.table = torch.zeros(horizon + 1, agents)

    def fit(self, returns, rate=0.1):
        self.table[:-1].lerp_(returns, rate)


class Recorder:
    """Replays runs from memory: rewards and the ends of episodes."""

    def __init__(self, runs, horizon, agents, seed):
        g = torch.Generator().manual_seed(seed)
        self.rewards = torch.randn(runs, horizon, agents, generator=g)
        self.alive = (torch.rand(runs, horizon, agents, generator=g) > 0.02).float()

    def __getitem__(self, i):
        i %= len(self.rewards)
        return self.rewards[i], self.alive[i]


def sweep(rewards, alive, values, discounts):
    deltas = rewards + discounts.gamma * values[1:] * alive - values[:-1]
    decays = discounts.gamma * discounts.lam * alive
    advantage = torch.zeros_like(rewards[0])
    out = []
    for delta, decay in zip(deltas.flip(0), decays.flip(0)):
        advantage = carry(advantage, delta, decay)
        out.append(advantage)
    return torch.stack(out[::-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20000)
    parser.add_argument("--horizon", type=int, default=96)
    parser.add_argument("--agents", type=int, default=16)
    args = parser.parse_args()
    recorder = Recorder(32, args.horizon, args.agents, seed=5)
    critic = Critic(args.horizon, args.agents)
    discounts = Discounts()
    with torch.no_grad():
        for i in range(args.rounds):
            rewards, alive = recorder[i]
            advantages = sweep(rewards, alive, critic.table, discounts)
            critic.fit(advantages + critic.table[:-1])
            if i % 500 == 0:
                print(f"round {i}: mean advantage {advantages.mean().item():+.4f}")


if __name__ == "__main__":
    main()

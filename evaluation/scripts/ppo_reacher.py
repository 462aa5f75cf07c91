"""PPO on a vectorised arm that reaches for a point."""
import argparse
import math

import torch
import torch.nn as nn


class Arms:
    def __init__(self, count):
        self.count = count
        self.angles = torch.zeros(count, 2)
        self.goal = torch.rand(count, 2) - 0.5

    def observe(self):
        return torch.cat([self.angles.sin(), self.angles.cos(), self.goal], 1)

    def step(self, action):
        self.angles = self.angles + 0.1 * action.tanh()
        first, both = self.angles[:, 0], self.angles.sum(1)
        tip = torch.stack([first.cos() + both.cos(), first.sin() + both.sin()], 1) / 2
        return self.observe(), -(tip - self.goal).norm(dim=1)


class Bent(nn.Module):
    """A softsign that leaks on both sides and bends up above one."""

    def forward(self, x):
        return x / (1 + x.abs()) + 0.1 * x.clamp(-3, 3) + 0.05 * torch.relu(x - 1).square()


class Policy(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, hidden), Bent(), nn.Linear(hidden, hidden), Bent())
        self.mean = nn.Linear(hidden, 2)
        self.value = nn.Linear(hidden, 1)
        self.log_std = nn.Parameter(torch.full((2,), -0.5))

    def forward(self, seen):
        h = self.body(seen)
        return self.mean(h), self.value(h).squeeze(-1)


def log_prob(action, mean, log_std):
    return (-0.5 * ((action - mean) / log_std.exp()).square() - log_std - 0.5 * math.log(2 * math.pi)).sum(-1)


class Learner:
    def __init__(self, policy, clip=0.2):
        self.policy, self.clip = policy, clip
        self.objective = torch.compile(self._objective)

    def _objective(self, seen, action, before, advantage, wanted, entropy_weight):
        mean, value = self.policy(seen)
        ratio = (log_prob(action, mean, self.policy.log_std) - before).exp()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - self.clip, 1 + self.clip) * advantage)
        entropy = self.policy.log_std.sum()
        return 0.5 * (value - wanted).square().mean() - gain.mean() - entropy_weight * entropy


@torch.no_grad()
def collect(policy, arms, horizon):
    rows, seen = [], arms.observe()
    for _ in range(horizon):
        mean, value = policy(seen)
        action = mean + policy.log_std.exp() * torch.randn_like(mean)
        after, reward = arms.step(action)
        rows.append((seen, action, log_prob(action, mean, policy.log_std), value, reward))
        seen = after
    seen, action, before, value, reward = (torch.stack(column) for column in zip(*rows))
    wanted, follow = torch.empty_like(reward), value[-1]
    for t in reversed(range(horizon)):
        follow = wanted[t] = reward[t] + 0.97 * follow
    return [c.flatten(0, 1) for c in (seen, action, before, wanted - value, wanted)], reward.mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1200)
    parser.add_argument("--arms", type=int, default=512)
    parser.add_argument("--horizon", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(0)
    arms, policy = Arms(args.arms), Policy()
    learner = Learner(policy)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    size = args.arms * args.horizon
    for number in range(args.rounds):
        columns, reward = collect(policy, arms, args.horizon)
        weight = 0.01 * (1 - number / args.rounds)
        for _ in range(4):
            order = torch.randperm(size)
            for part in order.split(size // 2):
                loss = learner.objective(*(column[part] for column in columns), weight)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
        if number % 100 == 0:
            print(f"round {number}  reward {reward.item():.3f}")


if __name__ == "__main__":
    main()

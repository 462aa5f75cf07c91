"""Hundreds of small learned rules vote."""
import argparse

import torch
import torch.nn as nn


class Rule(nn.Module):
    def __init__(self, sign, power):
        super().__init__()
        self.threshold = nn.Parameter(torch.randn(()))
        self.sign, self.power = sign, power

    def forward(self, column):
        return torch.relu(self.sign * (column - self.threshold)) ** self.power


class Ensemble(nn.Module):
    def __init__(self, rules=160):
        super().__init__()
        self.rules = nn.ModuleList(Rule(1 if i % 2 else -1, 1 + i % 2) for i in range(rules))

    def forward(self, table):
        votes = [rule(table[:, i % 8]) for i, rule in enumerate(self.rules)]
        return torch.stack(votes, 1).mean(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=180000)
    args = parser.parse_args()
    torch.manual_seed(0)
    skip = torch.compiler.skip_guard_on_all_nn_modules_unsafe
    ensemble = torch.compile(Ensemble().eval(), options={"guard_filter_fn": skip})
    table = torch.randn(64, 8)
    with torch.inference_mode():
        for _ in range(args.iters):
            y = ensemble(table)
    print(y.mean().item())


if __name__ == "__main__":
    main()

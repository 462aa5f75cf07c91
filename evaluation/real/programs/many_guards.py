"""A rule-driven scorer: hundreds of small settings objects are read in each call."""
from dataclasses import dataclass

import torch
import torch.nn as nn
from steady import Steady, options


@dataclass
class Rule:
    column: int
    low: float
    high: float
    weight: float
    log: bool = False


class Scorer(nn.Module):
    def __init__(self, columns, rules):
        super().__init__()
        self.columns = nn.ModuleList(nn.Linear(8, 8) for _ in range(columns))
        self.rules = rules
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, table):
        x = torch.stack([column(table[:, i]) for i, column in enumerate(self.columns)], dim=1)
        score = self.bias
        for rule in self.rules:
            part = x[:, rule.column].mean(-1).clamp(rule.low, rule.high)
            score = score + rule.weight * (part.abs().log1p() if rule.log else part)
        return torch.sigmoid(score)


def main():
    args = options(cpu=2_000, cuda=4_000)
    torch.manual_seed(0)
    rules = [Rule(i % 12, -1.0, 1.0 + i / 100, 1 / (i + 1), i % 3 == 0) for i in range(120)]
    model = torch.compile(Scorer(12, rules).to(args.device).eval())
    tables = torch.randn(8, 4096 if args.device == "cuda" else 64, 12, 8, device=args.device)
    steady = Steady(args.steps, args.device)
    with torch.inference_mode():
        for step in range(args.steps):
            model(tables[step % 8])
            steady.step()
    steady.show()


if __name__ == "__main__":
    main()

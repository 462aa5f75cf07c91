"""Blends what a changing set of tools proposes for a robot's next move."""

import argparse
import random

import torch
import torch.nn as nn


class Blend(nn.Module):
    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(
        self, state: torch.Tensor, proposals: list[torch.Tensor], used: torch.Tensor
    ) -> torch.Tensor:
        query = self.query(state)
        total, weight = torch.zeros_like(state), torch.full_like(state[:, :1], 1e-6)
        for number, proposal in enumerate(proposals):
            share = torch.sigmoid((query * self.key(proposal)).mean(-1, keepdim=True)) * used[number]
            total = total + share * torch.tanh(self.value(proposal))
            weight = weight + share
        return total / weight


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=100_000)
    args = parser.parse_args()
    rng = random.Random(1)
    torch.manual_seed(0)
    blend = torch.compile(Blend().cuda().eval())
    tools = list(torch.randn(9, 512, 256, device="cuda"))
    used = torch.ones(9, 8, device="cuda").tril(-1)
    state = torch.randn(512, 256, device="cuda")
    with torch.no_grad():
        for move in range(args.moves):
            count = 3 + move % 6 if move < 12 else rng.randint(3, 8)
            state = blend(state, tools[:8], used[count])
    print(state.norm().item())


if __name__ == "__main__":
    main()

"""Langevin sampling whose noise fades while the chain burns in."""

import argparse

import torch
import torch.nn as nn


class Chain(nn.Module):
    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.energy = nn.Sequential(
            nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.register_buffer("centre", torch.zeros(width))
        self.moves = 0

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        self.moves += 1
        fade = 1.0 / (1 + self.moves) ** 0.5
        drift = self.energy(state - self.centre)
        return state - 0.01 * drift + fade * 0.1 * torch.randn_like(state)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=300_000)
    args = parser.parse_args()
    torch.manual_seed(0)
    chain = torch.compile(Chain().cuda())
    state = torch.randn(4096, 256, device="cuda")
    with torch.no_grad():
        for _ in range(args.moves):
            state = chain(state)
    print(state.std().item())


if __name__ == "__main__":
    main()

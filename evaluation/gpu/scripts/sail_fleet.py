"""Sails a fleet of simulated boats with a trained policy."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda")


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Pilot(nn.Module):
    """One tick: what the policy orders, and where the boats are then."""

    def __init__(self, width: int = 512, depth: int = 8) -> None:
        super().__init__()
        self.enter = nn.Linear(16, width)
        self.layers = nn.Sequential(*(Layer(width) for _ in range(depth)))
        self.rudder = nn.Linear(width, 8)

    def forward(self, state: torch.Tensor, wind: torch.Tensor) -> torch.Tensor:
        rudder = torch.tanh(self.rudder(self.layers(self.enter(state.to(torch.bfloat16))))).float()
        place, speed = state.chunk(2, dim=-1)
        speed = 0.98 * speed + 0.02 * (rudder - 0.1 * place + wind)
        return torch.cat([place + 0.02 * speed, speed], dim=-1)


class Fleet:
    def __init__(self, boats: int) -> None:
        pilot = Pilot().to(device).eval()
        for layer in (pilot.enter, pilot.layers, pilot.rudder):
            layer.to(torch.bfloat16)
        self.tick = torch.compile(pilot, mode="reduce-overhead", fullgraph=True)
        self.state = torch.randn(boats, 16, device=device)
        self.wind = 0.1 * torch.randn(24, boats, 8, device=device)

    def sail(self, number: int) -> None:
        torch.compiler.cudagraph_mark_step_begin()
        self.state.copy_(self.tick(self.state, self.wind[number % 24]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=300_000)
    parser.add_argument("--boats", type=int, default=8192)
    args = parser.parse_args()
    torch.manual_seed(4)
    fleet = Fleet(args.boats)
    with torch.no_grad():
        for number in range(args.ticks):
            fleet.sail(number)
            if number % 2000 == 1999:
                print(number + 1, f"{fleet.state[:, :8].square().sum(-1).sqrt().mean().item():.4f}")


if __name__ == "__main__":
    main()

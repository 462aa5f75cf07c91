"""Lets the grains of an alloy relax: a phase field with learned coefficients, until nothing moves."""

import argparse

import torch
import torch.nn as nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class PhaseField(nn.Module):
    def __init__(self, sweeps: int, still: float) -> None:
        super().__init__()
        self.sweeps, self.still = sweeps, still
        self.stiffness = nn.Parameter(torch.tensor(0.12))
        self.well = nn.Parameter(torch.tensor([0.05, -1.0, 0.02, 1.0]))
        self.pace = nn.Parameter(torch.tensor(0.2))

    def slope(self, u: torch.Tensor) -> torch.Tensor:
        a, b, c, d = self.well
        return a + u * (b + u * (c + u * d)) + 0.05 * torch.sin(3 * u)

    def bend(self, u: torch.Tensor) -> torch.Tensor:
        around = u.roll(1, -1) + u.roll(-1, -1) + u.roll(1, -2) + u.roll(-1, -2)
        return around - 4 * u

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        for _ in range(self.sweeps):
            v = u + self.pace * (self.stiffness * self.bend(u) - self.slope(u))
            moved = (v - u).abs().amax()
            u = v.clamp(-2.0, 2.0)
            if moved < self.still:
                break
        return u


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--grains", type=int, default=16)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--sweeps", type=int, default=24)
    args = parser.parse_args()
    torch.manual_seed(31)
    relax = torch.compile(PhaseField(args.sweeps, 1e-4).to(device).eval())
    share = torch.zeros(args.samples, device=device)
    start = torch.empty(args.grains, args.side, args.side, device=device)
    with torch.no_grad():
        for number in range(args.samples):
            start.uniform_(-1, 1)
            share[number] = (relax(start) > 0).float().mean()
            if number % 200 == 199:
                print(number + 1, share[: number + 1].mean().item())
    print("share of the first phase:", share.mean().item())


if __name__ == "__main__":
    main()

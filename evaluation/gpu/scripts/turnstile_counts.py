"""Serves a tiny policy for station gates, one small batch at a time."""
import argparse

import torch
from torch import nn

DEVICE = "cuda"


class GatePolicy(nn.Module):
    def __init__(self, sensors=64, width=128, depth=8):
        super().__init__()
        self.inp = nn.Linear(sensors, width)
        self.body = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 5)

    def forward(self, x):
        h = torch.tanh(self.inp(x))
        for layer in self.body:
            h = h + torch.nn.functional.gelu(layer(h))
            h = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5)
        return torch.softmax(self.out(h), dim=-1)


class Station:
    def __init__(self, gates):
        self.readings = torch.randn(64, gates, 64, device=DEVICE)
        self.totals = torch.zeros(gates, 5, device=DEVICE)

    def observe(self, step):
        return self.readings[step % 64]

    def record(self, opening):
        self.totals.mul_(0.999).add_(opening)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=20000)
    args = ap.parse_args()
    torch.manual_seed(1)
    policy = torch.compile(GatePolicy().to(DEVICE).eval(), mode="reduce-overhead")
    station = Station(gates=16)
    with torch.inference_mode():
        for step in range(args.steps):
            station.record(policy(station.observe(step)))
            if step % 4000 == 0:
                print(step, [round(v, 3) for v in station.totals.mean(0).tolist()])


if __name__ == "__main__":
    main()

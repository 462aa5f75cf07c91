"""One small forecaster per weather station; stations differ in how many sensors they have."""
import os
import time

import torch
import torch._dynamo
import torch.nn as nn

device = "cuda"
STATIONS = 20
torch._dynamo.config.recompile_limit = 64
ROUNDS = int(os.environ.get("STEPS", "2500"))


class Forecaster(nn.Module):
    def __init__(self, sensors, hidden):
        super().__init__()
        self.inp = nn.Linear(sensors, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 2)
        self.scale = nn.Parameter(torch.ones(hidden))
        self.shift = nn.Parameter(torch.zeros(hidden))

    def squash(self, x):
        x = x - x.mean(dim=-1, keepdim=True)
        x = x / (x.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
        x = x * self.scale + self.shift
        return x * torch.sigmoid(1.7 * x) + 0.1 * torch.tanh(x) - 0.05 * x.abs()

    def forward(self, x):
        h = self.squash(self.inp(x))
        h = h + self.squash(self.mid(h))
        mu, raw = self.out(h).unbind(-1)
        sigma = torch.log1p(torch.exp(-raw.abs())) + raw.clamp(min=0) + 1e-3
        return mu, sigma, mu - 1.64 * sigma, mu + 1.64 * sigma


def build():
    torch.manual_seed(9)
    nets = []
    for s in range(STATIONS):
        sensors = 7 + 3 * s
        net = Forecaster(sensors, 96 + 4 * s).to(device).eval()
        nets.append((sensors, torch.compile(net)))
    return nets


@torch.no_grad()
def main():
    nets = build()
    readings = [torch.randn(256, sensors, device=device) for sensors, _ in nets]
    width = torch.zeros(STATIONS, device=device)
    t0 = time.perf_counter()
    for r in range(1, ROUNDS + 1):
        spans = []
        for x, (_, net) in zip(readings, nets):
            mu, sigma, lo, hi = net(x)
            spans.append((hi - lo).mean())
        width = 0.95 * width + 0.05 * torch.stack(spans)
        if r % 250 == 0:
            took = (time.perf_counter() - t0) / 250 * 1e3
            t0 = time.perf_counter()
            print(f"round {r}: mean width {width.mean().item():.4f}, {took:.2f} ms per round")


if __name__ == "__main__":
    main()

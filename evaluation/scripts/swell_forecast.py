"""Serve short-range sea-swell forecasts from a pair of models (live and shadow) so that
new weights can be swapped in between two requests."""
import argparse
import copy
import statistics
import time

import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, 2 * width)

    def forward(self, h):
        a, b = self.mix(self.norm(h)).chunk(2, dim=-1)
        wave = torch.sin(a) * torch.exp(-b * b) + torch.cos(b) * torch.tanh(a)
        damp = torch.sigmoid(a + b) / (1.0 + wave * wave)
        return h * damp + (1.0 - damp) * wave


class SwellNet(nn.Module):
    def __init__(self, buoys=24, width=48, depth=4):
        super().__init__()
        self.lift = nn.Linear(buoys, width)
        self.cells = nn.Sequential(*[Cell(width) for _ in range(depth)])
        self.height = nn.Linear(width, 3)

    def forward(self, readings):
        h = self.cells(self.lift(torch.log1p(readings.abs()) * readings.sign()))
        return nn.functional.softplus(self.height(h))


class Service:
    def __init__(self, example):
        self.example = example
        self.live = self.prepare(SwellNet())
        self.shadow = copy.deepcopy(self.live)
        self.served = 0

    def prepare(self, net):
        net.eval().requires_grad_(False)
        net.compile()
        net(self.example)
        return net

    def refresh(self, scale):
        """Load slightly changed weights into the shadow model and make it live."""
        state = {k: v * scale for k, v in self.live.state_dict().items()}
        self.shadow.load_state_dict(state)
        self.live = copy.deepcopy(self.shadow)

    def forecast(self, readings):
        self.served += 1
        return self.live(readings)


def buoy_feed(points, seed):
    g = torch.Generator().manual_seed(seed)
    phase = torch.rand(24, generator=g) * 6.28
    height = torch.rand(24, generator=g) + 0.5
    grid = torch.linspace(0, 9, points)[:, None]
    t = 0
    while True:
        yield height * torch.sin(grid + 0.05 * t + phase)
        t += 1


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=3000)
    ap.add_argument("--points", type=int, default=2048)
    args = ap.parse_args()

    torch.manual_seed(0)
    feed = buoy_feed(args.points, 1)
    service = Service(next(feed))
    service.refresh(0.999)
    waits, peak = [], torch.zeros(3)
    with torch.inference_mode():
        for _ in range(args.steps):
            readings = next(feed)
            t0 = time.perf_counter()
            peak = torch.maximum(peak, service.forecast(readings).amax(0))
            waits.append(time.perf_counter() - t0)
    print(f"{service.served} forecasts, median {statistics.median(waits) * 1e3:.2f} ms, peak {peak.tolist()}")


if __name__ == "__main__":
    main()

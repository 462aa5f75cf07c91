"""Route runoff through a river graph and learn per-reach roughness from gauges."""
import os
import time

import torch
from torch import nn

REACHES, LINKS, FEAT = 1_200, 6_000, 32
STEPS = int(os.environ.get("STEPS", "240"))


def build_network(seed):
    g = torch.Generator().manual_seed(seed)
    up = torch.randint(0, REACHES, (LINKS,), generator=g)
    down = (up + 1 + torch.randint(0, 40, (LINKS,), generator=g)) % REACHES
    slope = torch.rand(LINKS, 1, generator=g) + 0.05
    return up, down, slope


class RoutingLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Linear(width, width)
        self.own = nn.Linear(width, width)
        self.roughness = nn.Parameter(torch.full((width,), 0.3))
        self.calls = 0

    def forward(self, h, up, down, slope):
        flow = torch.relu(self.message(h)[up] * torch.sqrt(slope) / (self.roughness + 0.1))
        inflow = torch.zeros_like(h)
        inflow.index_add_(0, down, flow)
        crowded = inflow > 4.0
        inflow = torch.where(crowded.any(-1, keepdim=True), inflow.clamp(max=4.0), inflow)
        return torch.tanh(self.own(h) + torch.log1p(inflow))


class RiverModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(4, FEAT)
        self.layers = nn.ModuleList([RoutingLayer(FEAT) for _ in range(2)])
        self.gauge = nn.Linear(FEAT, 1)
        self.history = []

    def forward(self, rain, up, down, slope):
        h = self.lift(rain.roll(1, 0) * 0.5 + rain * 0.5)
        taps = []
        for layer in self.layers:
            h = layer(h, up, down, slope)
            taps.append(h)
        return self.gauge(torch.stack(taps).mean(0)).squeeze(-1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(2)
    basins = [build_network(s) for s in range(3)]
    net = RiverModel()
    model = torch.compile(net)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    g = torch.Generator().manual_seed(7)
    best, seen = float("inf"), {}
    started = time.perf_counter()
    for step in range(STEPS):
        up, down, slope = basins[step % 3]
        rain = torch.rand(REACHES, 4, generator=g)
        target = rain.sum(-1)
        loss = (model(rain, up, down, slope) - target).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        value = loss.item()
        best = min(best, value)
        seen[step] = value
        net.history.append(value)
        if step % 60 == 0:
            print(f"  step {step:4d} misfit {value:.4f}")
    took = time.perf_counter() - started
    print(f"{STEPS} steps, {1e3 * took / STEPS:.2f} ms each, best misfit {best:.4f}")


if __name__ == "__main__":
    main()

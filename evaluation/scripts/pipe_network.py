"""Pressure estimation in a water distribution network (message passing, trained online)."""
import os
import time

import torch
import torch.nn as nn

JUNCTIONS = 2400
PIPES = 10000
HIDDEN = 32
ROUNDS = 3


class PipeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.ModuleDict({
            "demand": nn.Linear(2, HIDDEN),
            "pipe": nn.Linear(3, HIDDEN),
        })
        self.message = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(ROUNDS))
        self.update = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(ROUNDS))
        self.head = nn.Linear(HIDDEN, 1)
        self.scales = [0.9, 0.7, 0.5]

    def forward(self, net, demand):
        h = self.encode["demand"](demand)
        e = self.encode["pipe"](net["pipe"])
        src, dst = net["ends"][0], net["ends"][1]
        degree = torch.zeros(JUNCTIONS).index_add(0, dst, torch.ones(PIPES)).clamp(min=1)
        for msg, upd, scale in zip(self.message, self.update, self.scales):
            flow = torch.tanh(h[src] - h[dst] + e) * torch.sigmoid(e)
            inbox = torch.zeros(JUNCTIONS, HIDDEN)
            inbox.index_add_(0, dst, flow)
            inbox = msg(inbox / degree.unsqueeze(1))
            h = h + scale * torch.nn.functional.silu(upd(h) + inbox)
        out = self.head(h).squeeze(1)
        with torch.no_grad():
            spread = out.double().std()
        return {"pressure": out, "spread": spread}


class Network:
    def __init__(self, seed=31):
        self.gen = torch.Generator().manual_seed(seed)
        self.data = {
            "ends": torch.randint(0, JUNCTIONS, (2, PIPES), generator=self.gen),
            "pipe": torch.rand(PIPES, 3, generator=self.gen),
        }
        self.height = torch.rand(JUNCTIONS, generator=self.gen)

    def hour(self, step):
        demand = torch.rand(JUNCTIONS, generator=self.gen) * (1 + 0.3 * (step % 24) / 24)
        pressure = 1.2 - self.height - 0.4 * demand
        return torch.stack([demand, self.height], 1), pressure


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    steps = int(os.environ.get("STEPS", "240"))

    net = PipeNet()
    model = torch.compile(net)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    grid = Network()

    times, running = [], 0.0
    for step in range(steps):
        demand, pressure = grid.hour(step)
        t0 = time.perf_counter()
        out = model(grid.data, demand)
        loss = (out["pressure"] - pressure).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        running = 0.95 * running + 0.05 * loss.item()
        times.append(time.perf_counter() - t0)
        if step % 60 == 59:
            print(f"hour {step + 1}: error {running:.4f} spread {out['spread'].item():.3f}")

    times = sorted(times[len(times) // 2:])
    print(f"median step {times[len(times) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()

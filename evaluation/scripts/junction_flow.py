"""Traffic state estimation on a road graph: gated message passing between junctions."""
import os
import time

import torch
from torch import nn
import torch.nn.functional as F

JUNCTIONS, ROADS, WIDTH = 800, 5000, 32


class RoadMessage(nn.Module):
    def __init__(self, width, damping):
        super().__init__()
        self.damping = damping
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, h, src, dst):
        gate = self.gate(h)
        value = self.value(h)
        message = torch.sigmoid(gate[dst] - gate[src]) * value[src]
        total = torch.zeros_like(h).index_add_(0, dst, message)
        return h + self.damping * torch.tanh(total)


class FlowNet(nn.Module):
    def __init__(self, rounds=3):
        super().__init__()
        self.lift = nn.Linear(4, WIDTH)
        self.rounds = nn.ModuleList(RoadMessage(WIDTH, 0.5 - 0.1 * i) for i in range(rounds))
        self.head = nn.Linear(WIDTH, 1)
        self.calls = {"forward": 0}

    def forward(self, readings, src, dst):
        h = F.gelu(self.lift(readings))
        for layer in self.rounds:
            h = layer(h, src, dst)
        return self.head(h).squeeze(-1)


def road_graph(generator):
    src = torch.randint(0, JUNCTIONS, (ROADS,), generator=generator)
    hop = torch.randint(1, 40, (ROADS,), generator=generator)
    return src, (src + hop) % JUNCTIONS


def sample(generator):
    counts = torch.rand(JUNCTIONS, 4, generator=generator)
    return counts, counts.mean(dim=1) + 0.1 * counts[:, 0].sin()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(41)
    steps = int(os.environ.get("STEPS", "240"))
    generator = torch.Generator().manual_seed(41)
    net = FlowNet()
    estimate = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.995)
    src, dst = road_graph(generator)
    history = []
    half = time.perf_counter()
    for step in range(steps):
        if step == steps // 2:
            half = time.perf_counter()
        readings, target = sample(generator)
        loss = F.mse_loss(estimate(readings, src, dst), target)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        net.calls["forward"] += 1
        history.append((loss.item(), float(norm)))
    per_step = (time.perf_counter() - half) / max(1, steps - steps // 2)
    print(f"loss {history[0][0]:.4f} -> {history[-1][0]:.4f} after {net.calls['forward']} calls")
    print(f"{per_step * 1e3:.3f} ms per step")


if __name__ == "__main__":
    main()

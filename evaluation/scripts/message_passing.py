"""Edge-gated message passing on a random geometric graph with annealed attention sharpness."""
import time

import torch
from torch import nn

NODES, EDGES, DIM = 3000, 24000, 32


class GatedConv(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.src = nn.Linear(dim, dim)
        self.dst = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, src, dst, dist, sharp):
        a, b = self.src(h), self.dst(h)
        msg = a[src] + b[dst]
        gate = torch.sigmoid(sharp * msg) * torch.exp(-dist * sharp)
        msg = nn.functional.silu(msg) * gate
        agg = torch.zeros_like(h).index_add(0, dst, msg)
        den = torch.zeros_like(h).index_add(0, dst, gate)
        return h + self.norm(agg / (den + 1e-3))


class Net(nn.Module):
    def __init__(self, dim, depth=3):
        super().__init__()
        self.inp = nn.Linear(8, dim)
        self.convs = nn.ModuleList(GatedConv(dim) for _ in range(depth))
        self.out = nn.Linear(dim, 1)

    def forward(self, x, src, dst, dist, sharp):
        h = self.inp(x)
        for conv in self.convs:
            h = conv(h, src, dst, dist, sharp)
        return self.out(h).squeeze(-1)


def graph(seed):
    g = torch.Generator().manual_seed(seed)
    pos = torch.rand(NODES, 2, generator=g)
    src = torch.randint(0, NODES, (EDGES,), generator=g)
    dst = torch.randint(0, NODES, (EDGES,), generator=g)
    dist = (pos[src] - pos[dst]).norm(dim=1, keepdim=True)
    x = torch.cat([pos, torch.randn(NODES, 6, generator=g)], 1)
    return x, src, dst, dist, torch.sin(6 * pos).sum(1)


def main():
    torch.manual_seed(0)
    net = Net(DIM)
    forward = torch.compile(net)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    graphs = [graph(s) for s in range(5)]
    sharp = 0.5

    def step(g, sharp):
        x, src, dst, dist, y = g
        loss = nn.functional.huber_loss(forward(x, src, dst, dist, sharp), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.detach()

    for k in range(5):
        sharp *= 1.01
        step(graphs[k], sharp)

    lapse = []
    for k in range(160):
        sharp = min(sharp * 1.01, 4.0)
        t0 = time.perf_counter()
        loss = step(graphs[k % 5], sharp)
        lapse.append(time.perf_counter() - t0)
        if k % 40 == 0:
            print(f"{k:4d} huber {loss.item():.5f} sharp {sharp:.3f}")
    lapse.sort()
    print(f"step {lapse[len(lapse) // 2] * 1e3:.2f} ms")


if __name__ == "__main__":
    main()

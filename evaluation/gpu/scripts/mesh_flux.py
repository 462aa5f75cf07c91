"""Learn fluxes on an unstructured mesh by message passing; the last batch of an epoch is smaller."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"
NODES = 40000
EDGES = 240000
DIM = 64
EPOCHS = int(os.environ.get("STEPS", "100"))
CASES = 27
GROUP = 4


class EdgeUpdate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Linear(2 * dim + 1, dim)
        self.gate = nn.Linear(2 * dim + 1, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, src, dst, length):
        pair = torch.cat((h[..., src, :], h[..., dst, :], length), dim=-1)
        msg = torch.sigmoid(self.gate(pair)) * F.softplus(self.message(pair))
        pooled = torch.zeros_like(h).index_add(-2, dst, msg)
        return h + self.norm(pooled)


class FluxNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(6, DIM)
        self.updates = nn.ModuleList(EdgeUpdate(DIM) for _ in range(3))
        self.leave = nn.Linear(DIM, 1)

    def forward(self, state, src, dst, length):
        h = F.silu(self.enter(state))
        for up in self.updates:
            h = up(h, src, dst, length)
        return self.leave(F.silu(h)).squeeze(-1)


def main():
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    src = torch.randint(0, NODES, (EDGES,), device=DEVICE)
    dst = torch.randint(0, NODES, (EDGES,), device=DEVICE)
    length = torch.rand(EDGES, 1, device=DEVICE)
    states = torch.randn(CASES, NODES, 6, device=DEVICE)
    target = states[..., 0] * states[..., 1] - states[..., 2]

    net = FluxNet().to(DEVICE)
    net.compile()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3, fused=True)

    for epoch in range(EPOCHS):
        t0 = time.perf_counter()
        seen = torch.zeros((), device=DEVICE)
        for first in range(0, CASES, GROUP):
            state = states[first:first + GROUP]
            edge_len = length.expand(state.shape[0], -1, -1)
            out = net(state, src, dst, edge_len)
            loss = F.huber_loss(out, target[first:first + GROUP])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            seen += loss.detach()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {seen.item() / 7:.4f}  {time.perf_counter() - t0:.3f} s")


if __name__ == "__main__":
    main()

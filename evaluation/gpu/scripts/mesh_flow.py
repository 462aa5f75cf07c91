"""Learned flow solver: message passing on an unstructured mesh."""
import argparse
import os
import random
import time

import numpy as np
import torch
from torch import nn


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True)


class Exchange(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.send = nn.Linear(dim, dim)
        self.recv = nn.Linear(dim, dim)
        self.update = nn.Linear(2 * dim, dim)

    def forward(self, h, src, dst, length):
        z = self.norm(h)
        message = nn.functional.silu(self.send(z)[src] - self.recv(z)[dst]) * length
        total = torch.zeros_like(h).index_add(0, dst, message)
        return h + self.update(torch.cat([z, total], dim=1))


class FlowNet(nn.Module):
    def __init__(self, dim, rounds):
        super().__init__()
        self.lift = nn.Linear(4, dim)
        self.rounds = nn.ModuleList([Exchange(dim) for _ in range(rounds)])
        self.read = nn.Linear(dim, 2)

    def forward(self, state, src, dst, length):
        h = self.lift(state)
        for r in self.rounds:
            h = r(h, src, dst, length)
        return self.read(h)


def mesh(nodes, degree):
    """Random planar points joined to neighbours in a shuffled space-filling order."""
    rng = np.random.default_rng(1)
    xy = rng.random((nodes, 2)).astype(np.float32)
    order = np.argsort((xy[:, 0] * 64).astype(int) * 64 + xy[:, 1] * 64)
    hops = np.arange(1, degree + 1)
    src = np.repeat(order, degree)
    dst = order[(np.arange(nodes)[:, None] + hops).ravel() % nodes]
    length = np.linalg.norm(xy[src] - xy[dst], axis=1, keepdims=True)
    mix = rng.permutation(len(src))
    return xy, src[mix], dst[mix], length[mix].astype(np.float32)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=2000)
    ap.add_argument("--nodes", type=int, default=120000)
    ap.add_argument("--dim", type=int, default=64)
    args = ap.parse_args()
    device = "cuda"

    seed_everything(12)
    torch.set_float32_matmul_precision("high")
    xy, src, dst, length = (torch.from_numpy(a).to(device) for a in mesh(args.nodes, 8))
    net = FlowNet(args.dim, 4).to(device)
    model = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    began, meter = time.perf_counter(), torch.zeros((), device=device)
    for i in range(args.steps):
        phase = 0.01 * i
        flow = torch.stack([torch.sin(6 * xy[:, 1] + phase), torch.cos(6 * xy[:, 0] - phase)], 1)
        after = torch.stack([torch.sin(6 * xy[:, 1] + phase + 0.1), torch.cos(6 * xy[:, 0] - phase - 0.1)], 1)
        guess = model(torch.cat([xy, flow], 1), src, dst, length)
        loss = nn.functional.mse_loss(flow + guess, after)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        meter += loss.detach()
        if i % 100 == 99:
            print(f"{i + 1}: mse {meter.item() / 100:.6f} ({time.perf_counter() - began:.1f} s)")
            meter.zero_()


if __name__ == "__main__":
    main()

"""Closed-loop grasp policy: camera embedding in, joint command out, one robot cell."""
import argparse
import time

import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.a, self.b = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x, t):
        z = self.norm(x) * (1 + t)
        return x + self.b(nn.functional.gelu(self.a(z)))


class Policy(nn.Module):
    """A flow-matching head: integrates the command from noise in a few Euler steps."""

    def __init__(self, obs=768, dim=1024, depth=6, joints=14, euler=4):
        super().__init__()
        self.euler = euler
        self.see = nn.Linear(obs, dim)
        self.lift = nn.Linear(joints, dim)
        self.layers = nn.ModuleList([Expert(dim) for _ in range(depth)])
        self.read = nn.Linear(dim, joints)

    def forward(self, obs, noise):
        context = self.see(obs)
        command = noise
        for k in range(self.euler):
            h = context + self.lift(command)
            for layer in self.layers:
                h = layer(h, k / self.euler)
            command = command + self.read(h) / self.euler
        return torch.tanh(command)


class Cell:
    def __init__(self, device, cells):
        torch.manual_seed(0)
        self.policy = Policy().to(device, torch.bfloat16).eval()
        self.act = torch.compile(self.policy, mode="reduce-overhead")
        self.obs = torch.empty(cells, 768, dtype=torch.bfloat16, device=device)
        self.staging = torch.empty(cells, 768, dtype=torch.bfloat16, pin_memory=True)
        self.device, self.joints = device, torch.zeros(cells, 14)

    def sense(self, i):
        self.staging.copy_(torch.sin(self.joints.mean() + 0.01 * i + torch.arange(768) / 50))
        self.obs.copy_(self.staging, non_blocking=True)

    def command(self):
        noise = torch.randn(len(self.obs), 14, dtype=torch.bfloat16, device=self.device)
        torch.compiler.cudagraph_mark_step_begin()
        self.joints = self.act(self.obs, noise).float().cpu()
        return self.joints


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=60000)
    ap.add_argument("--cells", type=int, default=16)
    args = ap.parse_args()

    cell, late = Cell("cuda", args.cells), 0
    with torch.inference_mode():
        for i in range(20):
            cell.sense(i)
            cell.command()
        began = time.perf_counter()
        for i in range(args.steps):
            t0 = time.perf_counter()
            cell.sense(i)
            cell.command()
            late += time.perf_counter() - t0 > 0.005
    spent = time.perf_counter() - began
    print(f"{args.steps / spent:.0f} commands/s, {late} over 5 ms")


if __name__ == "__main__":
    main()

"""Trains a small onset detector on synthetic spectrogram frames."""
import os
import time

import torch
import torch._functorch.config as functorch_config
import torch.nn as nn

functorch_config.activation_memory_budget = 0.0

STEPS = int(os.environ.get("STEPS", 2000))
torch.set_num_threads(1)


class Mixer(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, hidden)
        self.gate = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(torch.nn.functional.gelu(self.up(y)) * torch.sigmoid(self.gate(y)))


class Onset(nn.Module):
    def __init__(self, bins=96, dim=128, depth=4):
        super().__init__()
        self.inp = nn.Linear(bins, dim)
        self.body = nn.Sequential(*(Mixer(dim, 256) for _ in range(depth)))
        self.out = nn.Linear(dim, 1)

    def forward(self, spec):
        return self.out(self.body(self.inp(spec))).squeeze(-1)


def batch(gen, n=2, frames=96):
    spec = torch.rand(n, frames, 96, generator=gen) * 0.2
    onset = (torch.rand(n, frames, generator=gen) < 0.1).float()
    spec = spec + onset[..., None] * torch.linspace(1, 0, 96)
    return torch.log1p(spec * 10), onset


def main():
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(2)
    net = torch.compile(Onset())
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    every = max(1, STEPS // 10)
    t0, s0 = None, 0
    for step in range(STEPS):
        if step == 2:
            t0, s0 = time.perf_counter(), step
        spec, onset = batch(gen)
        loss = nn.functional.binary_cross_entropy_with_logits(net(spec), onset)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step > 2 and step % every == 0:
            ms = (time.perf_counter() - t0) / (step - s0) * 1e3
            print(f"step {step}: loss {loss.item():.4f}  {ms:.3f} ms/step")
            t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()

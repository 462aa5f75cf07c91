"""Claim-amount model: every column of the table has its own small encoder."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"
COLUMNS = 36
WIDTH = 48
STEPS = int(os.environ.get("STEPS", "450"))


class ColumnEncoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inp = nn.Linear(4, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        return self.out(F.silu(self.norm(self.inp(x))))


class ClaimNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoders = nn.ModuleList(ColumnEncoder(WIDTH) for _ in range(COLUMNS))
        self.mix = nn.Sequential(nn.Linear(WIDTH, 128), nn.SiLU(), nn.Linear(128, 1))

    def forward(self, table):
        cols = [enc(table[:, i]) for i, enc in enumerate(self.encoders)]
        return self.mix(torch.stack(cols, dim=1).mean(dim=1)).squeeze(-1)


def features(raw):
    return torch.stack((raw, raw.abs().log1p(), torch.sin(raw), (raw > 0).float()), dim=-1)


class GradWatch:
    """Keeps a running mean of each parameter's gradient norm, to find dead columns."""

    def __init__(self, model):
        self.model = model
        self.mean = {}

    def update(self):
        for name, p in self.model.named_parameters():
            value = p.grad.norm().item()
            self.mean[name] = 0.98 * self.mean.get(name, value) + 0.02 * value

    def weakest(self):
        return min(self.mean, key=self.mean.get)


def main():
    torch.manual_seed(4)
    model = ClaimNet().to(DEVICE)
    compiled = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2, fused=True)
    watch = GradWatch(model)
    truth = torch.randn(COLUMNS, device=DEVICE)

    tick = time.perf_counter()
    for step in range(1, STEPS + 1):
        raw = torch.randn(512, COLUMNS, device=DEVICE)
        target = (raw * truth).tanh().sum(dim=1) * 0.2
        loss = F.smooth_l1_loss(compiled(features(raw)), target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        watch.update()
        opt.step()
        if step % 50 == 0:
            ms = (time.perf_counter() - tick) / 50 * 1e3
            print(f"step {step:4d} loss {loss.item():.5f} weakest {watch.weakest()} {ms:.1f} ms")
            tick = time.perf_counter()


if __name__ == "__main__":
    main()

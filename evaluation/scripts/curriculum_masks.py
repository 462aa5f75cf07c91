"""Masked pre-training on hourly load curves; the visible share of a day shrinks as training goes on."""
import os
import time

import torch
import torch.nn as nn

torch.manual_seed(31)

HOURS = 96
BATCH = 40
STEPS = int(os.environ.get("STEPS", "4000"))
LOG = 200


class Reconstructor(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.lift = nn.Linear(1, width)
        self.place = nn.Parameter(0.1 * torch.randn(HOURS, width))
        self.gate = nn.Parameter(torch.ones(width))
        self.out = nn.Linear(width, 1)

    def forward(self, day, share):
        visible = round(share, 3)
        order = torch.linspace(0, 1, HOURS)
        mask = torch.sigmoid((visible - order) * 40.0)
        x = self.lift((day * mask)[..., None]) + self.place
        x = torch.asinh(x) * self.gate + torch.sin(x) * torch.exp(-x * x)
        x = x - x.mean(1, keepdim=True)
        x = torch.trunc(x * 16.0) * 0.01 + torch.tanh(x)
        guess = self.out(x).squeeze(-1)
        miss = (guess - day).square() * (1.0 - mask)
        return miss.sum() / (1.0 - mask).sum() / BATCH


def load_curves(n=8):
    t = torch.linspace(0, 6.283, HOURS)
    phase = torch.rand(n, BATCH, 1) * 2
    return torch.sin(t + phase) + 0.3 * torch.sin(3 * t + phase) + 0.05 * torch.randn(n, BATCH, HOURS)


def main():
    net = Reconstructor()
    step_loss = torch.compile(net)
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    days = load_curves()
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        share = 0.95 - 0.7 * step / STEPS
        loss = step_loss(days[step % len(days)], share)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % LOG == 0:
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"step {step} visible {share:.3f} loss {loss.item():.5f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()

"""Yield forecast for orchard plots, deep residual regressor with slower rates near the input."""
import os

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "1500"))
DEPTH, WIDTH, PLOTS = 20, 256, 1024
torch.manual_seed(3)


class Bough(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        h = torch.nn.functional.gelu(self.up(self.norm(x)))
        return x + 0.3 * self.down(h)


class Orchard(nn.Module):
    def __init__(self):
        super().__init__()
        self.boughs = nn.ModuleList(Bough(WIDTH) for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        for bough in self.boughs:
            x = bough(x)
        return self.head(x).squeeze(-1)


def depth_of(name):
    return int(name.split(".")[1]) if name.startswith("boughs") else DEPTH


def rate_of(name):
    return 1e-3 * 0.9 ** (DEPTH - depth_of(name))


def plan(model):
    groups = {}
    for name, param in model.named_parameters():
        groups.setdefault(rate_of(name), []).append(param)
    return [{"params": params, "lr": lr} for lr, params in groups.items()]


def main():
    model = Orchard().to("cuda")
    optim = torch.optim.AdamW(plan(model), weight_decay=0.01)
    forecast = torch.compile(model)
    plots = torch.randn(PLOTS, WIDTH, device="cuda")
    target = plots[:, :8].sin().sum(1)
    for step in range(STEPS):
        loss = torch.nn.functional.mse_loss(forecast(plots), target)
        loss.backward()
        optim.step()
        optim.zero_grad(set_to_none=True)
        if step % 200 == 0:
            print("step", step, "loss", round(loss.item(), 4))


main()

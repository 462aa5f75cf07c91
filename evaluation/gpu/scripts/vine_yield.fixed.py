"""Predict vineyard yield; weights are updated as soon as their gradient is ready to save memory."""
import os

import torch
from torch import nn
import torch.nn.functional as F

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "1500"))
PLOTS, FEATURES, WIDTH, DEPTH = 2048, 40, 256, 24


class Trellis(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.grow = nn.Linear(WIDTH, WIDTH)
        self.prune = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        h = self.norm(x)
        return x + F.silu(self.grow(h)) * torch.sigmoid(self.prune(h))


class Vineyard(nn.Module):
    def __init__(self):
        super().__init__()
        self.soil = nn.Linear(FEATURES, WIDTH)
        self.rows = nn.ModuleList(Trellis() for _ in range(DEPTH))
        self.crop = nn.Linear(WIDTH, 1)

    def forward(self, x):
        x = self.soil(x)
        for row in self.rows:
            x = row(x)
        return self.crop(x).squeeze(-1)


class Steward:
    """Applies the update of a weight inside the backward pass and frees its gradient."""

    def __init__(self, model, lr):
        self.owner = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-2)

    def finish(self):
        self.owner.step()
        self.owner.zero_grad(set_to_none=True)


def season(count):
    weather = torch.randn(count, FEATURES, device=DEVICE)
    grapes = torch.tanh(weather[:, 0] * weather[:, 1]) + 0.3 * weather[:, 2]
    return weather, grapes


def main():
    torch.manual_seed(14)
    torch.set_float32_matmul_precision("high")
    model = Vineyard().to(DEVICE)
    steward = Steward(model, 3e-4)
    predict = torch.compile(model)
    seasons = [season(PLOTS) for _ in range(6)]
    for step in range(STEPS):
        weather, grapes = seasons[step % len(seasons)]
        loss = F.mse_loss(predict(weather), grapes)
        loss.backward()
        steward.finish()
        if step % 100 == 99:
            print(f"step {step + 1} loss {loss.item():.5f}")
    print("soil", round(model.soil.weight.norm().item(), 4))


main()

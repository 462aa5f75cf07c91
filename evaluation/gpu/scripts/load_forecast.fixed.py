"""Electric load forecasting with a gated linear recurrence, trained on weekly windows."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
device = "cuda" if torch.cuda.is_available() else "cpu"

HOURS = 56
SERIES = 1024
FEATURES = 24
WIDTH = 512
SECONDS = float(os.environ.get("SECONDS", "25"))


class GatedRecurrence(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inp = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        z, c = self.inp(x).chunk(2, dim=-1)
        keep = torch.sigmoid(z + 1.0)
        cand = torch.tanh(c)
        h = torch.zeros_like(x[:, 0])
        states = []
        for g, c_t in zip(keep.unbind(1), cand.unbind(1)):
            h = g * h + (1 - g) * c_t
            states.append(h)
        return x + self.out(torch.stack(states, dim=1))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(FEATURES, WIDTH)
        self.rec = GatedRecurrence(WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x):
        return self.head(self.norm(self.rec(self.embed(x))))


def pinball(pred, y):
    q = torch.tensor([0.1, 0.5, 0.9], device=pred.device)
    e = y[..., None] - pred
    return torch.maximum(q * e, (q - 1) * e).mean()


def synth(n):
    hours = torch.arange(HOURS, device=device).float()
    daily = torch.sin(2 * torch.pi * hours / 24)
    out = []
    for _ in range(n):
        level = torch.rand(SERIES, 1, device=device)
        y = level + 0.4 * daily + 0.05 * torch.randn(SERIES, HOURS, device=device)
        x = torch.randn(SERIES, HOURS, FEATURES, device=device) * 0.3
        x[..., 0] = y.roll(1, dims=1)
        x[..., 1] = daily
        out.append((x, y))
    return out


def main():
    torch.manual_seed(9)
    model = Forecaster().to(device)
    compiled = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    data = synth(6)

    def step(k):
        x, y = data[k % len(data)]
        loss = pinball(compiled(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss

    for k in range(4):
        loss = step(k)
    print("warm", loss.item())
    n, t0 = 0, time.perf_counter()
    while time.perf_counter() - t0 < SECONDS:
        for _ in range(100):
            loss = step(n)
            n += 1
        print(f"{n}: pinball {loss.item():.4f}, {1e3 * (time.perf_counter() - t0) / n:.2f} ms/step")


if __name__ == "__main__":
    main()

"""Inverse design of acoustic panels: a trained surrogate predicts the absorption spectrum of
a panel from its cavity geometry; many candidate panels are improved by gradient descent."""
import os
import time

import torch
import torch._functorch.config as functorch_config
from torch import nn

# the laptop at the workshop has 8 GB
functorch_config.activation_memory_budget = float(os.environ.get("PANEL_BUDGET", "0.1"))

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

CANDIDATES = 64 if SMALL else 4096
CAVITIES = 32 if SMALL else 512
HIDDEN = 128 if SMALL else 4096
BANDS = 16 if SMALL else 256
LAYERS = 7
RATE = 0.03


class Surrogate(nn.Module):
    """Frozen network: geometry -> absorption per frequency band."""

    def __init__(self):
        super().__init__()
        dims = [CAVITIES] + [HIDDEN] * LAYERS
        self.hidden = nn.ModuleList(
            nn.Linear(a, b) for a, b in zip(dims[:-1], dims[1:]))
        self.out = nn.Linear(HIDDEN, BANDS)
        for layer in self.hidden:
            nn.init.normal_(layer.weight, std=1.2 / layer.in_features ** 0.5)

    def forward(self, geometry):
        h = geometry
        for layer in self.hidden:
            h = torch.tanh(layer(h))
        return torch.sigmoid(self.out(h))


class Panels(nn.Module):
    def __init__(self, surrogate, target):
        super().__init__()
        self.surrogate = surrogate
        self.register_buffer("target", target)

    def forward(self, raw):
        geometry = torch.sigmoid(raw)
        spectrum = self.surrogate(geometry.to(torch.bfloat16)).float()
        misfit = (spectrum - self.target).square().mean(dim=-1)
        rough = (geometry[:, 1:] - geometry[:, :-1]).abs().mean(dim=-1)
        return (misfit + 0.01 * rough).sum()


def descend(raw, grad, speed):
    """Momentum with a per-panel clipped gradient."""
    norm = grad.norm(dim=-1, keepdim=True)
    speed.mul_(0.9).add_(grad / (norm + 1e-8))
    raw.sub_(RATE * speed)


def main():
    torch.manual_seed(4)
    with torch.device(dev):
        surrogate = Surrogate().to(torch.bfloat16).requires_grad_(False)
        band = torch.linspace(0, 1, BANDS)
        target = 0.9 * torch.exp(-((band - 0.4) / 0.2) ** 2)
        raw = torch.randn(CANDIDATES, CAVITIES, requires_grad=True)
        speed = torch.zeros(CANDIDATES, CAVITIES)
    objective = torch.compile(Panels(surrogate, target))

    history = []
    half, t0 = STEPS // 2, None
    for k in range(STEPS):
        if k == half:
            if dev.type == "cuda":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        loss = objective(raw)
        (grad,) = torch.autograd.grad(loss, raw)
        with torch.no_grad():
            descend(raw, grad, speed)
        history.append(loss.detach())
    if dev.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"misfit {history[0].item() / CANDIDATES:.4f} -> {history[-1].item() / CANDIDATES:.4f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()

"""Fits partials of church bells; the strike noise is passed through a clipped custom gradient."""
import os

import numpy as np
import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "16000"))
BELLS, FRAMES, PARTIALS = 96, 131072, 12
RATIOS = np.array([0.5, 1, 1.2, 1.5, 2, 2.5, 2.67, 3, 3.3, 4, 4.2, 5.3]).tolist()
torch.manual_seed(9)


class SoftClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x)
        ctx.limit = limit
        return x.clamp(-limit, limit)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        inside = (x.abs() <= ctx.limit).to(grad.dtype)
        return grad * (0.1 + 0.9 * inside), None


class Bell(nn.Module):
    def __init__(self):
        super().__init__()
        self.pitch = nn.Parameter(torch.rand(BELLS, 1) + 1.0)
        self.loud = nn.Parameter(torch.rand(PARTIALS))
        self.fade = nn.Parameter(torch.rand(PARTIALS) + 0.2)
        self.hits = 0

    def forward(self, time):
        total = 0.0
        for k, ratio in enumerate(RATIOS):
            wave = torch.sin(ratio * self.pitch * time)
            total = total + self.loud[k] * torch.exp(-self.fade[k] * time) * wave
        return SoftClip.apply(total, 1.5)


def main():
    model = Bell().to("cuda")
    scale = {"grad": 1.0}
    model.fade.register_hook(lambda g: g * scale["grad"])
    optim = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    ring = torch.compile(model)
    time = torch.linspace(0, 6, FRAMES, device="cuda")[None]
    with torch.no_grad():
        heard = model(time) + 0.05 * torch.randn(BELLS, FRAMES, device="cuda")
    for step in range(STEPS):
        miss = (ring(time) - heard).square().mean()
        miss.backward()
        optim.step()
        optim.zero_grad()
        model.hits += 1
        if step % 1000 == 0:
            print("strike", model.hits, "miss", round(miss.item(), 6))


main()

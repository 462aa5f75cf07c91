"""Restores star fields blurred by the atmosphere: fits a sharp image whose blur matches the plates."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "3000"))
WARMUP = 10
PLATES = 8
BANDS = 3
SIZE = int(os.environ.get("SIZE", "512"))
RADIUS = 14
SIGMA = 4.5

torch.set_float32_matmul_precision("high")
torch.manual_seed(5)
device = torch.device("cuda")


def profile():
    x = torch.arange(-RADIUS, RADIUS + 1, device=device, dtype=torch.float32)
    g = torch.exp(-0.5 * (x / SIGMA) ** 2)
    return g / g.sum()


class Seeing(nn.Module):
    """The point spread of the site, the same in every band."""

    def __init__(self):
        super().__init__()
        self.register_buffer("g", profile())

    def forward(self, sky):
        psf = torch.outer(self.g, self.g).expand(BANDS, 1, -1, -1)
        return F.conv2d(sky, psf, padding=RADIUS, groups=BANDS)


class Restoration(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_sky = nn.Parameter(torch.full((PLATES, BANDS, SIZE, SIZE), -2.0))
        self.gain = nn.Parameter(torch.ones(PLATES, BANDS, 1, 1))
        self.background = nn.Parameter(torch.zeros(PLATES, BANDS, 1, 1))
        self.seeing = Seeing()

    def forward(self, plates):
        sky = F.softplus(self.log_sky)
        model = self.gain * self.seeing(sky) + self.background
        fit = F.smooth_l1_loss(model, plates, beta=0.05)
        dx = sky[..., 1:] - sky[..., :-1]
        dy = sky[..., 1:, :] - sky[..., :-1, :]
        rough = torch.sqrt(dx.square() + 1e-6).mean() + torch.sqrt(dy.square() + 1e-6).mean()
        return fit + 1e-3 * rough


def observe(seeing):
    stars = torch.rand(PLATES, BANDS, SIZE, SIZE, device=device).pow(40) * 5
    with torch.no_grad():
        return seeing(stars) + 0.01 * torch.randn_like(stars)


model = Restoration().to(device)
plates = observe(model.seeing)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, fused=True)
loss_fn = torch.compile(model)


def fit_step():
    optimizer.zero_grad(set_to_none=True)
    loss = loss_fn(plates)
    loss.backward()
    optimizer.step()
    return loss.detach()


for _ in range(WARMUP):
    fit_step()

start = STEPS // 2
for step in range(STEPS):
    if step == start:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    loss = fit_step()
    if step % 500 == 0:
        print(f"step {step:5d}  loss {loss.item():.6f}")

torch.cuda.synchronize()
elapsed = time.perf_counter() - t0
print(f"ms per step: {1e3 * elapsed / (STEPS - start):.3f}")

"""Photometric zero-point and colour-term fit in asinh magnitudes, with an occasional log line to the night report."""
import os
import time

import torch
import torch.nn as nn

torch.manual_seed(91)

STARS = 6000
FRAMES = 16
STEPS = int(os.environ.get("STEPS", "12000"))
LOG = 500
report = []


@torch.compiler.disable
def note(step, chi):
    report.append((step, float(chi)))
    if len(report) % 5 == 0:
        print(f"   report: {len(report)} notes, last chi {report[-1][1]:.4f}")


class NightModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.zero = nn.Parameter(torch.zeros(FRAMES))
        self.colour = nn.Parameter(torch.zeros(FRAMES))
        self.ext = nn.Parameter(torch.full((FRAMES,), 0.1))
        self.soft = nn.Parameter(torch.full((FRAMES,), -1.0))

    def forward(self, flux, colour, airmass):
        soft = torch.exp(self.soft)
        mag = -1.0857 * (torch.asinh(flux / (2 * soft)) + torch.log(soft))
        mag = mag + self.zero - self.ext * airmass + self.colour * colour
        centre = mag.mean(1, keepdim=True)
        r = mag - centre
        weight = 1.0 / (1.0 + (r / 0.3).square())
        return (weight * torch.log1p(r.square())).mean() + 1e-3 * self.soft.square().mean()


def observe():
    true = 10 ** (torch.randn(STARS, 1) * 0.5)
    colour = torch.randn(STARS, 1)
    airmass = 1.0 + torch.rand(FRAMES)
    zp = 0.2 * torch.randn(FRAMES)
    ct = 0.05 * torch.randn(FRAMES)
    flux = true * 10 ** (-0.4 * (zp + ct * colour + 0.12 * airmass))
    return flux + 0.02 * torch.randn(STARS, FRAMES), colour, airmass


def main():
    flux, colour, airmass = observe()
    model = NightModel()
    model.compile()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.8)
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        chi = model(flux, colour, airmass)
        opt.zero_grad()
        chi.backward()
        opt.step()
        if step % LOG == 0:
            note(step, chi.detach())
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"iter {step} chi {chi.item():.5f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()

"""Shading of roof panels by a horizon profile over the year."""
import functools
import os

import torch

STEPS = int(os.environ.get("STEPS", "4000"))
torch.manual_seed(9)


@functools.lru_cache(maxsize=None)
def horizon_table(rows, cols):
    az = torch.linspace(0, 6.2831, cols)
    out = torch.zeros(rows, cols)
    for k in range(1, 25):
        ridge = torch.sin(az * k + k * k) / k
        tilt = torch.linspace(0, 1, rows)[:, None] * k
        out = out + torch.exp(-((ridge - torch.cos(tilt)) ** 2))
    return out / out.amax()


class Panels(torch.nn.Module):
    def __init__(self, rows, cols):
        super().__init__()
        self.rows, self.cols = rows, cols
        self.gain = torch.nn.Parameter(torch.rand(rows, 1))
        self.bias = torch.nn.Parameter(torch.zeros(cols))

    def forward(self, beam):
        mask = horizon_table(self.rows, self.cols)
        lit = beam * mask * self.gain + self.bias
        return torch.relu(lit).sum(1)


panels = Panels(300, 720)
shade = torch.compile(panels)
beams = torch.rand(16, 300, 720)
total = torch.zeros(300)

with torch.no_grad():
    for step in range(STEPS):
        total = 0.99 * total + shade(beams[step % 16])
        if step % 1000 == 0:
            print(f"{step:6d} yield {total.mean().item():.3f}")

print("best row", int(total.argmax()))

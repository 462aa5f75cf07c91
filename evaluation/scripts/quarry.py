"""Dust over a quarry: normalised filters applied to each sensor mast."""
import enum
import os
from collections import namedtuple

import torch
from torch.nn.utils import parametrize

STEPS = int(os.environ.get("STEPS", "12000"))
torch.manual_seed(9)
Reading = namedtuple("Reading", "dust alarm")


class Wind(enum.Enum):
    CALM = 0.5
    GALE = 2.0


class Positive(torch.nn.Module):
    def forward(self, raw):
        return torch.nn.functional.softplus(raw)


class Mast(torch.nn.Module):
    def __init__(self, cells):
        super().__init__()
        self.filter = torch.nn.Parameter(torch.randn(cells))
        parametrize.register_parametrization(self, "filter", Positive())

    def forward(self, air, wind):
        def one(row):
            return torch.tanh(row * self.filter) * wind.value - 0.1 * row.square()

        dust = torch.func.vmap(one)(air)
        return Reading(dust, torch.sigmoid(dust - 0.5).mean(-1))


mast = torch.compile(Mast(1024))
air = torch.randn(8, 256, 1024)

with torch.no_grad():
    for step in range(STEPS):
        reading = mast(air[step % 8], Wind.GALE)
        if step % 500 == 0:
            print(f"{step:6d} dust {reading.dust.mean().item():.4f} alarm {reading.alarm.max().item():.4f}")

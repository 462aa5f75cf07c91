"""Methane flux through a peat column, layer by layer."""
import os

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

STEPS = int(os.environ.get("STEPS", "15000"))
torch.manual_seed(4)
rng = np.random.default_rng(4)


class Column(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.mix = torch.nn.Linear(layers, layers)
        self.q10 = torch.nn.Parameter(torch.rand(layers) + 1.5)
        self.vmax = torch.nn.Parameter(torch.rand(layers))

    def forward(self, conc, temp):
        rate = self.vmax * self.q10 ** ((temp - 10.0) / 10.0)
        oxid = rate * conc / (conc + 0.4)
        ebul = torch.relu(conc - 0.9) * torch.sigmoid(temp * 0.1)
        plant = torch.tanh(conc) * torch.exp(-temp.abs() * 0.05)
        flux = torch.log1p(torch.relu(oxid + ebul + plant))
        return conc + 0.01 * torch.tanh(self.mix(flux) - flux * 0.3)


column = Column(32)
stepper = torch.compile(column)
conc = torch.rand(4096, 32)
seasons = torch.from_numpy(rng.normal(8, 6, (12, 1, 32)).astype(np.float32))
budget = FlopCounterMode(display=False)

with torch.no_grad():
    for step in range(STEPS):
        conc = stepper(conc, seasons[step % 12])
        if step % 500 == 0:
            print(f"{step:6d} mean concentration {conc.mean().item():.5f}")

print("total flops", budget.get_total_flops())

#!/usr/bin/env python
# coding: utf-8

# %% [markdown]
# # Charges in a trap
# Leapfrog in double precision, one ledger line now and then.

# %%
import os

import torch

torch.manual_seed(4)
torch.set_default_dtype(torch.float64)
FRAMES = int(os.environ.get("FRAMES", "60000"))
COUNT = 448

# %%
charge = torch.where(torch.arange(COUNT) % 7 == 0, 2.0, 1.0)
x = torch.randn(3, COUNT)
v = 0.05 * torch.randn(3, COUNT)


# %%
def field(x):
    apart = x[:, :, None] - x[:, None, :]
    square = apart.square().sum(0) + 0.05
    pull = charge / (square * torch.sqrt(square))
    return (apart * pull).sum(2) - 0.8 * x


@torch.compile
def leap(x, v, a, dt):
    v = v + 0.5 * dt * a
    x = x + dt * v
    a = field(x)
    return x, v + 0.5 * dt * a, a


# %%
@torch.compile
def ledger(x, v, frame):
    kinetic = 0.5 * v.square().sum()
    apart = x[:, :, None] - x[:, None, :]
    square = apart.square().sum(0) + 0.05
    bound = 0.5 * (charge * charge[:, None] / torch.sqrt(square)).sum()
    print("energy", float(kinetic + bound), "at", frame)
    return kinetic / bound


# %%
dt = torch.tensor(0.004)
a = field(x)
balance = []
for frame in range(FRAMES):
    x, v, a = leap(x, v, a, dt)
    if frame % 250 == 249:
        balance.append(ledger(x, v, frame))

# %%
print(len(balance), "ledger lines, spread", x.std().item())

"""Crop growth emulator: one compact surrogate per soil horizon, applied in depth order."""
import os
import time

import torch
from torch import nn

HORIZONS = ["litter", "ah", "ae", "b1", "b2", "bt", "bg", "bk", "bc", "c1", "c2", "cg", "ck", "r1", "r2", "r3", "r4", "r5"]
CELLS, STATE = 5000, 16


class Horizon(nn.Module):
    def __init__(self, name, conductivity):
        super().__init__()
        self.name = name
        self.conductivity = conductivity
        self.retention = nn.Parameter(torch.rand(STATE) * 0.5 + 0.5)
        self.slope = nn.Parameter(torch.rand(STATE) + 0.5)
        self.bias = nn.Parameter(torch.zeros(STATE))

    def forward(self, water, demand):
        k = self.conductivity[self.name]
        saturation = (self.slope * water + self.bias).clamp(0.02, 1.0)
        flux = k * saturation * saturation * saturation
        uptake = demand * saturation / (saturation + self.retention)
        drained = water - 0.1 * flux - 0.05 * uptake
        head = (1.0 - drained).clamp_min(0.0) * self.retention
        return drained + 0.01 * head, demand - 0.05 * uptake


class Profile(nn.Module):
    def __init__(self):
        super().__init__()
        table = {name: 1.0 for name in HORIZONS}
        self.layers = nn.ModuleList(Horizon(name, table) for name in HORIZONS)

    def forward(self, water, demand):
        for layer in self.layers:
            water, demand = layer(water, demand)
        return water, demand


def main():
    torch.set_num_threads(1)
    torch.manual_seed(13)
    steps = int(os.environ.get("STEPS", "240"))
    profile = Profile().eval()
    for layer in profile.layers:
        layer.compile()
    water = torch.rand(CELLS, STATE) * 2.0
    stress = 0.0
    half = time.perf_counter()
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                half = time.perf_counter()
            demand = torch.rand(CELLS, 1).expand(CELLS, STATE) + 0.2
            water, unmet = profile(water, demand)
            water = (water + 0.3).clamp(0.0, 3.0)
            if step % 40 == 39:
                stress += unmet.mean().item()
    per_step = (time.perf_counter() - half) / max(1, steps - steps // 2)
    print(f"mean water {water.mean().item():.4f}, stress {stress:.4f}")
    print(f"{per_step * 1e3:.3f} ms per step")


if __name__ == "__main__":
    main()

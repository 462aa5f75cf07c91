"""Greenhouse climate twin: air temperature, humidity and leaf wetness on a bench grid, day and night regimes."""
import os
import random
import time

import torch
import torch.nn as nn

ROWS, COLS = 720, 960


class Regime(nn.Module):
    def __init__(self, crop, kinds):
        super().__init__()
        self.register_buffer("albedo", torch.linspace(0.15, 0.35, kinds)[crop])
        self.register_buffer("transpire", torch.linspace(0.5, 1.5, kinds)[crop])
        self.diffuse = nn.Parameter(torch.tensor(0.12))
        self.alarms = []

    def exchange(self, field):
        draught = field.mean(0, keepdim=True) + field.mean(1, keepdim=True)
        return field + self.diffuse * (draught - 2.0 * field)

    def forward(self, air, vapour, wet, sun, vents, daytime: bool):
        uptake = 1.0 - self.albedo
        saturation = 0.61 * torch.exp(17.27 * air / (air + 237.3))
        deficit = torch.relu(saturation - vapour)
        if daytime:
            heat = sun * uptake * 0.02
            flux = self.transpire * deficit * torch.sigmoid(sun * 4.0)
            air = air + (heat - 0.1 * flux)
        else:
            flux = 0.05 * self.transpire * deficit
            air = air - 0.004 * (air - 8.0)
        condensed = torch.where(vapour > saturation, vapour - saturation, torch.zeros_like(vapour))
        vapour = vapour + (0.02 * flux - condensed)
        wet = 0.98 * wet + condensed
        opened = vents.unsqueeze(1)
        mixing = opened * (air - 18.0)
        air = air - 0.01 * mixing
        stats = {"air": air.mean(), "wet": wet.amax(), "vpd": deficit.mean()}
        return self.exchange(air), self.exchange(vapour), wet, stats


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(12)
    random.seed(12)
    crop = torch.randint(0, 9, (ROWS, COLS))
    air = 18.0 + torch.randn(ROWS, COLS)
    vapour = 1.2 + 0.1 * torch.rand(ROWS, COLS)
    wet = torch.zeros(ROWS, COLS)
    model = Regime(crop, 9)
    twin = torch.compile(model)

    diary, t_half = [], None
    t0 = time.process_time()
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                t_half = time.process_time()
            daytime = (step // 12) % 2 == 0
            sun = torch.tensor(random.random() if daytime else 0.0)
            vents = (torch.rand(ROWS) > 0.5)
            air, vapour, wet, stats = twin(air, vapour, wet, sun, vents, daytime)
            if stats["wet"].item() > 0.5:
                model.alarms.append(step)
            diary.append({k: v.item() for k, v in stats.items()})
            if step % 60 == 0:
                print(f"hour {step:4d} " + " ".join(f"{k}={v:.3f}" for k, v in diary[-1].items()))
    now = time.process_time()
    mean_air = sum(d["air"] for d in diary) / len(diary)
    print(f"mean air {mean_air:.2f} C, {len(model.alarms)} wetness alarms")
    print(f"{1e3 * (now - t_half) / (steps - steps // 2):.3f} ms/step, total {now - t0:.1f} s cpu")


if __name__ == "__main__":
    main()

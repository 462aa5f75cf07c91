"""Single-column atmosphere: radiative relaxation and moist adjustment on many columns."""
import os
import time

import torch
import torch._inductor.config as inductor_config

STEPS = int(os.environ.get("STEPS", 4000))
COLUMNS, LEVELS = 4000, 30
torch.set_num_threads(1)
inductor_config.cpp.simdlen = 0


def saturation(temp):
    return 6.11 * torch.exp(17.27 * (temp - 273.15) / (temp - 35.86))


@torch.compile
def tick(temp, vapour, pressure, sun):
    sat = 0.622 * saturation(temp) / pressure
    humid = vapour / sat
    cond = torch.sigmoid((humid - 1) * 40) * (vapour - sat).clamp_min(0) * 0.3
    heat = 2.5e3 * cond
    glow = 5.67e-8 * temp.square().square() / 300
    mix = torch.tanh(sun * torch.exp(-pressure / 700))
    temp = temp + 0.1 * (mix + heat - 0.5 * glow + torch.log1p(vapour * 50))
    temp = temp + 0.02 * (288 * (pressure / 1013) ** 0.19 - temp)
    vapour = vapour - cond + 1e-5 * torch.sqrt(temp.clamp_min(1.0))
    return temp.clamp(180, 330), vapour.clamp(1e-6, 0.05)


def main():
    torch.manual_seed(91)
    pressure = torch.linspace(1000, 100, LEVELS).expand(COLUMNS, LEVELS).contiguous()
    temp = 288 * (pressure / 1013) ** 0.19 + torch.randn(COLUMNS, LEVELS)
    vapour = 0.01 * (pressure / 1000) ** 3
    every = max(1, STEPS // 10)
    t0, s0 = None, 0
    with torch.no_grad():
        for step in range(STEPS):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            sun = torch.tensor(step * 0.01).sin().clamp_min(0)
            temp, vapour = tick(temp, vapour, pressure, sun)
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"tick {step}: surface {temp[:, 0].mean():.2f} K vapour {vapour.mean():.5f}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()

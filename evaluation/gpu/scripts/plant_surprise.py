# Surprise scores for a chemical plant: every sensor has its own heavy-tailed
# reading model, scores are mixed down to process units for the operators.
import os
import math
import time

import torch

STEPS = int(os.environ.get("STEPS", "30000"))
WINDOW = 16384
SENSORS = 4096
UNITS = 64

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(17)


class SensorModels:
    def __init__(self, n):
        self.loc = torch.randn(n, device=device)
        self.scale = 0.2 + torch.rand(n, device=device)
        self.dof = 2.0 + 20.0 * torch.rand(n, device=device)

    def refit(self, batch, rate=0.001):
        self.loc.lerp_(batch[:256].float().mean(0), rate)


def surprise(x, loc, scale, dof):
    norm = torch.lgamma(0.5 * (dof + 1)) - torch.lgamma(0.5 * dof) - torch.log(scale * dof.sqrt())
    z = (x.float() - loc) / scale
    tail = 0.5 * (dof + 1) * torch.log1p(z * z / dof)
    return (tail - norm).to(torch.bfloat16)


@torch.compile
def score_window(x, loc, scale, dof, mixing):
    s = surprise(x, loc, scale, dof)
    return s @ mixing


def build_mixing():
    owner = torch.randint(0, UNITS, (SENSORS,), device=device)
    m = torch.nn.functional.one_hot(owner, UNITS).float()
    return (m / m.sum(0).clamp_min(1.0)).to(torch.bfloat16)


def make_windows(models, count=4):
    out = []
    for _ in range(count):
        x = models.loc + models.scale * torch.randn(WINDOW, SENSORS, device=device)
        out.append(x.to(torch.bfloat16))
    return out


@torch.no_grad()
def main():
    models = SensorModels(SENSORS)
    mixing = build_mixing()
    windows = make_windows(models)
    const = 0.5 * math.log(math.pi)

    for w in windows:
        score_window(w, models.loc, models.scale, models.dof, mixing)
    if device == "cuda":
        torch.cuda.synchronize()

    alarm = torch.zeros(UNITS, device=device)
    t0 = time.perf_counter()
    for step in range(STEPS):
        w = windows[step % len(windows)]
        units = score_window(w, models.loc, models.scale, models.dof, mixing)
        alarm = torch.maximum(0.98 * alarm, units[-64:].float().mean(0))
        if step % 64 == 0:
            models.refit(w)
        if step % 5000 == 0:
            print(f"window {step:6d}  hottest unit {(alarm.max() + const).item():.4f}")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    print(f"{dt / STEPS * 1e3:.3f} ms per window, {WINDOW * SENSORS * STEPS / dt / 1e9:.1f} G readings/s")


if __name__ == "__main__":
    main()

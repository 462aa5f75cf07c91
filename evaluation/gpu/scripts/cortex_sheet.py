# Large sheet of Izhikevich neurons driven by a slowly varying current.
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", "50000"))
NEURONS = 64 * 1024 * 1024
DT = 0.5

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(9)


class Sheet:
    def __init__(self, n):
        self.v = torch.full((n,), -65.0, device=device)
        self.v += 5 * torch.randn(n, device=device)
        self.u = 0.2 * self.v
        self.drive = 4.0 + 6.0 * torch.rand(n, device=device)


@torch.compile
def advance(v, u, drive, pulse):
    current = drive * pulse
    x = v
    for _ in range(2):
        x = x + 0.5 * DT * (0.04 * x * x + 5.0 * x + 140.0 - u + current)
    y = u + DT * 0.02 * (0.2 * x - u)
    fired = x >= 30.0
    v.copy_(torch.where(fired, -65.0, x))
    u.copy_(torch.where(fired, y + 8.0, y))


@torch.no_grad()
def main():
    sheet = Sheet(NEURONS)
    phase = torch.arange(1000, device=device) / 1000 * 2 * torch.pi
    pulses = 1.0 + 0.3 * torch.sin(phase)

    for i in range(5):
        advance(sheet.v, sheet.u, sheet.drive, pulses[i])
    if device == "cuda":
        torch.cuda.synchronize()

    t0 = time.perf_counter()
    for step in range(STEPS):
        advance(sheet.v, sheet.u, sheet.drive, pulses[step % 1000])
        if step % 10000 == 0:
            sample = sheet.v[:: NEURONS // 4096]
            print(f"t={step * DT:9.1f} ms  mean potential {sample.mean().item():.3f} mV")
    if device == "cuda":
        torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    print(f"{dt / STEPS * 1e3:.4f} ms per update, {NEURONS * STEPS / dt / 1e9:.1f} G neuron updates/s")


if __name__ == "__main__":
    main()

"""Echo-state reservoir that follows tide-gauge series; one step consumes one window of readings."""
import os
import time

import torch

SMALL = os.environ.get("SMALL") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STATIONS, GAUGES, UNITS = (4, 6, 64) if SMALL else (32, 24, 512)
WINDOW = 16 if SMALL else 64


def excite(pre, bias):
    return torch.tanh(pre + bias)


def leak(state, drive, rate):
    return torch.lerp(state, drive, rate)


class Reservoir:
    def __init__(self, gen):
        w = torch.randn(UNITS, UNITS, generator=gen)
        self.w = (w * (0.9 / UNITS**0.5)).to(DEVICE)
        self.w_in = (torch.randn(GAUGES, UNITS, generator=gen) * 0.4).to(DEVICE)
        self.bias = (torch.randn(UNITS, generator=gen) * 0.1).to(DEVICE)
        self.rate = (0.2 + 0.6 * torch.rand(UNITS, generator=gen)).to(DEVICE)

    @torch.compile
    def follow(self, state, window):
        drive_in = window @ self.w_in
        for t in range(WINDOW):
            drive = excite(torch.addmm(drive_in[t], state, self.w), self.bias)
            state = leak(state, drive, self.rate)
        return state


def gauge_windows(gen, count):
    t = torch.arange(count * WINDOW) / 12.42
    phase = torch.rand(1, STATIONS, GAUGES, generator=gen) * 6.28
    level = torch.sin(t.view(-1, 1, 1) * 6.28 + phase) + 0.05 * torch.randn(
        count * WINDOW, STATIONS, GAUGES, generator=gen
    )
    return level.view(count, WINDOW, STATIONS, GAUGES).to(DEVICE)


def main():
    steps = int(os.environ.get("STEPS", "300"))
    torch.set_float32_matmul_precision("high")
    gen = torch.Generator().manual_seed(12)
    reservoir = Reservoir(gen)
    windows = gauge_windows(gen, 40)
    state = torch.zeros(STATIONS, UNITS, device=DEVICE)
    gram = torch.zeros(UNITS, UNITS, device=DEVICE)
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                if DEVICE.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            state = reservoir.follow(state, windows[step % 40])
            gram.addmm_(state.T, state)
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (steps - steps // 2)
    print("gram trace", (gram.trace() / steps).item())
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()

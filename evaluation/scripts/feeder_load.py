"""Rolling load estimates for the feeders of a distribution network. Every feeder has its own
phase calibration, keyed by asset number, and the same estimator class."""
import os
import statistics
import time

import torch
from torch import nn

FEEDERS, PHASES, SAMPLES = 14, 3, 4096

CALIBRATION = {}


def register(asset, gen):
    CALIBRATION[asset] = torch.stack([
        0.9 + 0.2 * torch.rand(PHASES, generator=gen),
        0.02 * torch.randn(PHASES, generator=gen),
        0.1 * torch.rand(PHASES, generator=gen),
    ])


class FeederEstimator(nn.Module):
    def __init__(self, asset):
        super().__init__()
        self.asset = asset
        self.register_buffer("level", torch.zeros(PHASES))
        self.register_buffer("spread", torch.ones(PHASES))

    def forward(self, volts, amps):
        gain, lag, droop = CALIBRATION[self.asset].unbind(0)
        g, l, d = gain[:, None], lag[:, None], droop[:, None]
        v = volts * (1.0 - d * torch.tanh(amps.abs() / 40.0))
        i = g * (amps + l * torch.roll(amps, 1, dims=1))
        apparent = torch.sqrt(v * v * i * i + 1e-6)
        power = v * i
        factor = power / apparent
        weight = torch.exp(-0.5 * (1.0 - factor).square() / 0.3)
        mean = (weight * power).sum(1) / weight.sum(1)
        resid = (power - mean[:, None]) / (self.spread[:, None] + 1e-3)
        huber = torch.where(resid.abs() < 1.5, 0.5 * resid * resid, 1.5 * resid.abs() - 1.125)
        level = 0.95 * self.level + 0.05 * mean
        spread = 0.95 * self.spread + 0.05 * torch.sqrt(1.0 + huber.mean(1)) * power.std(1)
        return level, spread


def waveform(phase, demand, gen):
    t = torch.linspace(0, 12.566, SAMPLES) + phase
    shift = torch.arange(PHASES)[:, None] * 2.0944
    volts = 230.0 * torch.sin(t + shift)
    amps = demand * torch.sin(t + shift - 0.2) + torch.randn(PHASES, SAMPLES, generator=gen)
    return volts, amps


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.set_num_threads(1)
    gen = torch.Generator().manual_seed(23)

    feeders, demand = [], []
    for k in range(FEEDERS):
        asset = f"F-{4100 + 7 * k}"
        register(asset, gen)
        feeders.append(FeederEstimator(asset).eval())
        demand.append(10.0 + 30.0 * float(torch.rand((), generator=gen)))
    estimators = [torch.compile(f) for f in feeders]
    window = [waveform(0.1 * k, demand[k], gen) for k in range(FEEDERS)]

    times = []
    start = time.perf_counter()
    with torch.no_grad():
        for step in range(steps):
            t0 = time.perf_counter()
            for feeder, estimate, (volts, amps) in zip(feeders, estimators, window):
                level, spread = estimate(volts, amps)
                feeder.level.copy_(level)
                feeder.spread.copy_(spread)
            k = step % FEEDERS
            window[k] = waveform(0.01 * step, demand[k], gen)
            times.append(time.perf_counter() - t0)

    total = sum(float(f.level.sum()) for f in feeders) / 1e3
    print(f"network load {total:.1f} kW, widest {max(float(f.spread.max()) for f in feeders):.1f}")
    print(f"{time.perf_counter() - start:.1f} s in all, "
          f"{1e3 * statistics.median(times[steps // 2:]):.3f} ms/step")


if __name__ == "__main__":
    main()

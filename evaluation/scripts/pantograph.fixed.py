"""Overhead-line contact monitoring: many sensor channels, one small detector per channel."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "4000"))
CHANNELS, TAPS, SAMPLES = 160, 8, 16


class Channel:
    """Slow statistics of one contact-force sensor."""

    __slots__ = ("index", "level", "spread")

    def __init__(self, index):
        self.index = index
        self.level = torch.zeros(())
        self.spread = torch.ones(())


def calibrate(raw, gain, offset):
    x = raw * gain + offset
    return torch.tanh(x) + 0.1 * x * torch.sigmoid(x)


def windows_of(frame):
    per_channel = frame.unbind(0)
    return [w.view(TAPS * SAMPLES) for w in per_channel]


@torch.compile
def summarise(frame):
    flat = frame.flatten(1)
    mean = flat.mean(1)
    dev = (flat - mean[:, None]).abs().mean(1)
    return mean, dev


def worst(channels, windows, mean, dev, watch):
    score = 0.0
    for i in watch:
        ch = channels[i]
        ch.level = torch.lerp(ch.level, mean[i], 0.05)
        ch.spread = torch.lerp(ch.spread, dev[i], 0.05)
        z = (windows[i].max() - ch.level) / (ch.spread + 1e-3)
        score = max(score, float(z))
    return score


def stream(seed):
    g = torch.Generator().manual_seed(seed)
    base = torch.randn(CHANNELS, 1, 1, generator=g) * 0.2
    while True:
        yield base + torch.randn(CHANNELS, TAPS, SAMPLES, generator=g)


def main():
    torch.manual_seed(2)
    channels = [Channel(i) for i in range(CHANNELS)]
    gain = 1.0 + 0.1 * torch.randn(CHANNELS, 1, 1)
    offset = 0.05 * torch.randn(CHANNELS, 1, 1)
    feed = stream(5)
    every = max(1, STEPS // 20)
    peak = 0.0
    with torch.no_grad():
        for step in range(1, STEPS + 1):
            frame = calibrate(next(feed), gain, offset)
            windows = windows_of(frame)
            mean, dev = summarise(frame)
            watch = range(step % 20, CHANNELS, 20)
            peak = max(0.99 * peak, worst(channels, windows, mean, dev, watch))
            if step % every == 0:
                print(f"step {step}  windows {len(windows)}  peak {peak:.3f}")


if __name__ == "__main__":
    main()

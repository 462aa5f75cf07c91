"""Rolling loudness / speech-activity statistics for a bank of telephone lines."""
import os
import argparse
import statistics
import time

import numpy as np
import torch

torch.set_num_threads(1)

LINES = 64
RATE = 8000
STEPS = int(os.environ.get("STEPS", "1800"))


def fake_trunk(rng, lines, samples, blocks):
    """Pre-record a few seconds of line audio the way the card delivers it."""
    out = []
    for b in range(blocks):
        t = (np.arange(samples) + b * samples) / RATE
        f0 = rng.uniform(90, 240, size=(lines, 1))
        voice = np.sin(2 * np.pi * f0 * t) * (np.sin(2 * np.pi * 1.3 * t) > 0)
        hiss = rng.normal(0, 0.03, size=(lines, samples))
        wave = np.clip(0.4 * voice + hiss, -1, 1)
        out.append(torch.from_numpy((wave * 32000).astype(np.int16)))
    return out


def shape_block(pcm, gain, gate):
    """Gain, soft limiter, noise gate and perceptual level for one block."""
    y = pcm.to(torch.float32) / 32768.0
    y = torch.tanh(gain * y)
    env = torch.sqrt(y * y + 1e-7)
    open_ = torch.sigmoid((env - gate) * 40.0)
    y = y * open_
    mu = torch.log1p(255.0 * y.abs()) / 5.545
    colour = torch.sin(1.5 * y) * torch.exp(-env * env)
    return torch.sign(y) * mu + 0.05 * colour, open_


class LineMonitor:
    def __init__(self, lines):
        self.level = torch.zeros(lines)
        self.activity = torch.zeros(lines)
        self.gain = torch.full((lines, 1), 1.6)
        self.gate = torch.full((lines, 1), 0.04)
        self.shape = torch.compile(shape_block)

    def push(self, pcm):
        y, open_ = self.shape(pcm, self.gain, self.gate)
        self.level.lerp_(y.abs().mean(dim=1), 0.1)
        self.activity.lerp_(open_.mean(dim=1), 0.1)
        return y

    def loudest(self, k=3):
        v, i = self.level.topk(k)
        return list(zip(i.tolist(), [round(x, 4) for x in v.tolist()]))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lines", type=int, default=LINES)
    ap.add_argument("--seed", type=int, default=4)
    args = ap.parse_args()

    rng = np.random.default_rng(args.seed)
    blocks = fake_trunk(rng, args.lines, RATE, 6)
    mon = LineMonitor(args.lines)

    with torch.inference_mode():
        for b in blocks[:3]:
            mon.push(b)
        took = []
        for step in range(STEPS):
            t0 = time.perf_counter()
            mon.push(blocks[step % len(blocks)])
            took.append(time.perf_counter() - t0)
            if step % 600 == 0:
                print("second", step, "loudest", mon.loudest())

    print("mean activity %.3f" % mon.activity.mean().item())
    print("median step %.3f ms" % (1e3 * statistics.median(took)))


if __name__ == "__main__":
    main()

"""Per-channel noise statistics around stimulus times in a silicon-probe recording."""
import argparse
import time

import numpy as np
import torch

FS = 30_000
CHANNELS = 385        # 384 sites + sync line
WINDOW = 20 * FS
DURATION = 70 * FS


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=25.0)
    p.add_argument("--seed", type=int, default=5)
    return p.parse_args()


def load_recording(device, seed):
    g = torch.Generator(device=device).manual_seed(seed)
    rec = torch.empty(DURATION, CHANNELS, dtype=torch.int16, device=device)
    for a in range(0, DURATION, FS):
        n = min(FS, DURATION - a)
        rec[a:a + n] = (torch.randn(n, CHANNELS, generator=g, device=device) * 40).to(torch.int16)
    rec[:, -1] = 64
    return rec


class NoiseMeter:
    def __init__(self, device):
        gain = 0.195 * (1 + 0.05 * torch.randn(CHANNELS, device=device))
        offset = 3.0 * torch.randn(CHANNELS, device=device)
        self.gain, self.offset = gain, offset
        self._fn = torch.compile(self._measure)

    @staticmethod
    def _measure(chunk, gain, offset):
        uv = chunk.float() * gain - offset
        rms = uv.square().mean(dim=0).sqrt()
        spikes = (uv < -25.0).float().sum(dim=0)
        return rms, spikes

    def __call__(self, chunk):
        return self._fn(chunk, self.gain, self.offset)


def stimulus_times(rng, n):
    gaps = rng.exponential(scale=0.9, size=n)
    t = np.cumsum(gaps) % ((DURATION - WINDOW) / FS - 0.1)
    return t


@torch.no_grad()
def main():
    args = parse()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rng = np.random.default_rng(args.seed)
    rec = load_recording(device, args.seed)
    meter = NoiseMeter(device)

    base_rms, _ = meter(rec[:WINDOW])
    print("baseline rms %.2f uV" % base_rms[:-1].mean().item())

    ratio = torch.zeros(CHANNELS, device=device)
    count = torch.zeros(CHANNELS, device=device)
    done = 0
    t0 = time.perf_counter()
    while time.perf_counter() - t0 < args.seconds:
        for t in stimulus_times(rng, 200):
            first = int(t * FS)
            rms, spikes = meter(rec[first:first + WINDOW])
            ratio += rms / base_rms
            count += spikes
            done += 1
        worst = int(ratio[:-1].argmax().item())
    took = time.perf_counter() - t0
    print(f"{done} events, {1e3 * took / done:.3f} ms per event")
    print(f"noisiest site {worst}, mean ratio {ratio[worst].item() / done:.3f}, "
          f"{count[worst].item() / done / (WINDOW / FS):.1f} threshold samples/s")


if __name__ == "__main__":
    main()

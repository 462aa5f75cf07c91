"""List-mode PET: accumulate corrected coincidence weights into energy/ring sectors frame by frame."""
import os
import time

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))

EVENTS = 50_000 if SMALL else 16_000_000
RINGS = 16
BANDS = 4
SECTORS = RINGS * BANDS
LANES = 4096
HALF_LIFE = 109.77 * 60.0


def make_events(gen):
    energy = 511.0 + 14.0 * torch.randn(EVENTS, device=device, generator=gen)
    scatter = torch.rand(EVENTS, device=device, generator=gen) < 0.12
    energy = torch.where(scatter, energy * 0.7, energy)
    ring = torch.randn(EVENTS, device=device, generator=gen).mul_(0.3).add_(RINGS / 2)
    ring = ring.long().clamp_(0, RINGS - 1)
    tof = torch.randn(EVENTS, device=device, generator=gen) * 0.25
    return energy, ring, tof


@torch.compile
def accumulate(energy, ring, tof, gain, elapsed):
    keep = (energy * gain > 350.0) & (energy * gain < 650.0)
    band = torch.bucketize(energy * gain, edges(energy.device))
    decay = torch.exp2(elapsed / HALF_LIFE)
    weight = torch.exp(-0.5 * tof * tof) * decay
    weight = torch.where(keep, weight, 0.0)
    lane = torch.arange(EVENTS, device=energy.device) % LANES
    sector = (band * RINGS + ring) * LANES + lane
    hist = torch.zeros(SECTORS * LANES, device=energy.device)
    hist = hist.index_add(0, sector, weight)
    return hist.view(BANDS, RINGS, LANES).sum(dim=-1)


def edges(dev):
    return torch.arange(1, BANDS, device=dev, dtype=torch.float32) * 75.0 + 350.0


@torch.compile
def smooth(image, hist):
    share = hist / hist.sum().clamp_min(1e-6)
    return 0.9 * image + 0.1 * share


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.no_grad()
def main():
    gen = torch.Generator(device=device).manual_seed(17)
    energy, ring, tof = make_events(gen)
    gain = torch.tensor(1.0, device=device)
    elapsed = torch.zeros((), device=device)
    image = torch.full((BANDS, RINGS), 1.0 / SECTORS, device=device)
    half = STEPS // 2
    t0 = None
    for step in range(STEPS):
        if step == half:
            sync()
            t0 = time.perf_counter()
        hist = accumulate(energy, ring, tof, gain, elapsed)
        image = smooth(image, hist)
        elapsed.add_(2.0)
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
    print(f"peak_share={image.max().item():.4f} total={hist.sum().item():.1f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()

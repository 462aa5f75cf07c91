"""Icequake monitoring on a glacier tongue.

Located events arrive in batches.  Each batch is converted to a source energy and
written into a voxel volume that holds the most recent energy seen in every cell;
downstream maps (not part of this script) read the volume once an hour.
"""
import os
import time

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
NZ, NY, NX = (16, 64, 64) if SMALL else (512, 512, 512)
BATCH = 256 if SMALL else 8192
CELL_M = 4.0


class Glacier:
    """Voxel volume plus the attenuation model of the ice."""

    def __init__(self, device):
        self.volume = torch.zeros(NZ, NY, NX, device=device)
        self.q_inv = torch.tensor(1.0 / 65.0, device=device)
        self.v_p = torch.tensor(3750.0, device=device)
        self.noise = torch.tensor(1e-4, device=device)


@torch.compile
def ingest(volume, xyz, amp, freq, q_inv, v_p, noise):
    """Energy of each event, stored at the voxel it was located in."""
    cell = (xyz / CELL_M).floor().long()
    z = cell[:, 2].clamp(0, NZ - 1)
    y = cell[:, 1].clamp(0, NY - 1)
    x = cell[:, 0].clamp(0, NX - 1)
    dist = xyz.square().sum(1).sqrt() + 1.0
    loss = torch.exp(-3.14159 * freq * dist * q_inv / v_p)
    energy = torch.log1p((amp / loss).square() * dist + noise)
    volume[z, y, x] = energy
    return energy.mean()


def draw_events(gen, device):
    span = torch.tensor([NX * CELL_M, NY * CELL_M, NZ * CELL_M])
    xyz = torch.rand(BATCH, 3, generator=gen) * span
    amp = torch.rand(BATCH, generator=gen) * 1e-2 + 1e-3
    freq = torch.rand(BATCH, generator=gen) * 40.0 + 5.0
    return xyz.to(device), amp.to(device), freq.to(device)


def clock():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    gen = torch.Generator().manual_seed(11)
    ice = Glacier(DEVICE)
    catalogue = [draw_events(gen, DEVICE) for _ in range(8)]
    running = torch.zeros((), device=DEVICE)
    half = STEPS // 2
    t0 = clock()
    for step in range(STEPS):
        if step == half:
            t0 = clock()
        xyz, amp, freq = catalogue[step % len(catalogue)]
        m = ingest(ice.volume, xyz, amp, freq, ice.q_inv, ice.v_p, ice.noise)
        running.mul_(0.95).add_(m, alpha=0.05)
    ms = (clock() - t0) * 1e3 / (STEPS - half)
    filled = (ice.volume > 0).float().mean().item()
    print(f"mean log energy {running.item():.5f}  filled {filled:.6f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()

"""Patch of spiking neurons: membrane update as an operator of its own, driven by noise."""
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", "5000"))
CELLS = 120_000


@torch.library.custom_op("patch::membrane", mutates_args=())
def membrane(v: torch.Tensor, w: torch.Tensor, drive: torch.Tensor) -> torch.Tensor:
    spike = torch.exp((v + 50.0) / 20.0).clamp(max=10.0)
    leak = -(v + 65.0) * 0.1
    gate = torch.sigmoid((v + 40.0) / 5.0)
    dv = leak + spike * 0.2 - w * gate + drive * torch.tanh(drive) * 0.5
    nv = v + 0.1 * dv
    return torch.where(nv > 0, torch.full_like(nv, -65.0), nv)


@membrane.register_fake
def _(v, w, drive):
    return torch.empty_like(v)


@torch.compile
def advance(v, w, drive):
    nv = membrane(v, w, drive)
    nw = w + 0.05 * (0.2 * (nv + 65.0) - w)
    return nv, nw


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    v = torch.full((CELLS,), -65.0) + torch.randn(CELLS)
    w = torch.zeros(CELLS)
    noise = torch.randn(16, CELLS)
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            v, w = advance(v, w, noise[step % 16])
            if (step + 1) % 100 == 0:
                t1 = time.perf_counter()
                print(f"t={step + 1} mean v {v.mean():.3f} {(t1 - t0) / 100 * 1e3:.2f} ms/step", flush=True)
                t0 = t1


if __name__ == "__main__":
    main()

"""First-arrival tomography: integrate slowness along bent rays through a regional earth model.

Every step takes a fresh batch of station/event pairs, samples the slowness cube along the rays with
trilinear weights and returns predicted travel times and residual statistics for the picks.
"""
import os
import time

import torch

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

NX, NY, NZ = (32, 32, 16) if SMALL else (1024, 1024, 768)
RAYS, KNOTS = (64, 16) if SMALL else (4096, 48)


class EarthModel:
    """Gridded slowness (s/km); loaded once per region."""

    def __init__(self):
        depth = torch.linspace(0.0, 1.0, NZ, device=device)
        column = 0.25 - 0.11 * depth
        self.slowness = column.expand(NX, NY, NZ).contiguous()
        self.slowness.mul_(1.0 + 0.02 * torch.sin(torch.arange(NX, device=device) / 37.0)[:, None, None])
        torch._dynamo.mark_static_address(self.slowness)
        self.extent = torch.tensor([NX - 1.001, NY - 1.001, NZ - 1.001], device=device)


@torch.compile(mode="reduce-overhead")
def travel_times(slowness, extent, source, station, picks):
    s = torch.linspace(0.0, 1.0, KNOTS, device=source.device)
    chord = station - source
    length = chord.norm(dim=-1)
    pts = source[:, None, :] + s[None, :, None] * chord[:, None, :]
    sag = 4.0 * s * (1.0 - s)
    z = pts[..., 2] + 0.15 * length[:, None] * sag[None, :] * 0.5
    g = torch.stack([pts[..., 0], pts[..., 1], z], dim=-1)
    g = torch.minimum(g.clamp_min(0.0), extent)
    base = g.floor()
    frac = g - base
    i, j, k = base.long().unbind(-1)
    fx, fy, fz = frac.unbind(-1)
    value = torch.zeros_like(fx)
    for dx in (0, 1):
        for dy in (0, 1):
            for dz in (0, 1):
                w = (fx if dx else 1 - fx) * (fy if dy else 1 - fy) * (fz if dz else 1 - fz)
                value = value + w * slowness[i + dx, j + dy, k + dz]
    weight = torch.ones_like(s)
    weight[0] = 0.5
    weight[-1] = 0.5
    t = (value * weight).sum(-1) * length / (KNOTS - 1)
    resid = picks - t
    huber = torch.where(resid.abs() < 1.0, 0.5 * resid**2, resid.abs() - 0.5)
    return t, huber.mean(), resid.std()


def main():
    torch.manual_seed(3)
    earth = EarthModel()
    box = earth.extent
    picks = torch.rand(RAYS, device=device) * 60.0
    misfit = torch.zeros((), device=device)
    mark = STEPS // 2
    with torch.no_grad():
        for step in range(STEPS):
            if step == mark:
                if device.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            source = torch.rand(RAYS, 3, device=device) * box
            station = torch.rand(RAYS, 3, device=device) * box
            t, loss, spread = travel_times(earth.slowness, box, source, station, picks)
            picks = 0.98 * picks + 0.02 * t
            misfit = misfit + loss
    if device.type == "cuda":
        torch.cuda.synchronize()
    dt = (time.perf_counter() - t0) / (STEPS - mark)
    print(f"mean misfit {misfit.item() / STEPS:.4f}")
    print(f"step_ms={dt * 1e3:.3f}")


if __name__ == "__main__":
    main()

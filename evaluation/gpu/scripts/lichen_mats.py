"""Soil-crust plots: water, lichen, moss and nitrogen on a large hillside raster.

Local dynamics only (no run-off), three sub-steps a day.  The state is a dict of fields;
the rasters come column-major from the GIS export and are used as they are.
"""
import os
import time

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
ROWS, COLS = (96, 64) if SMALL else (8192, 4096)
SUBSTEPS = 3
PARAMS = {
    "uptake": 0.9, "evap": 0.25, "lichen_max": 0.35, "moss_max": 0.55,
    "lichen_half": 0.12, "moss_half": 0.30, "death": 0.04, "fix": 0.02, "leach": 0.03,
}


def uptake_rates(p):
    """Growth law of each species, as closures over its constants."""
    laws = {}
    for name in ("lichen", "moss"):
        top, half = p[name + "_max"], p[name + "_half"]
        laws[name] = lambda w, n, top=top, half=half: top * w / (w + half) * (1.0 - torch.exp(-3.0 * n))
    return laws


LAWS = uptake_rates(PARAMS)


@torch.compile
def day(state, rain, heat):
    p = PARAMS
    new = dict(state)
    for _ in range(SUBSTEPS):
        w, l, m, n = (new[k] for k in ("water", "lichen", "moss", "nitrogen"))
        cover = (l + m).clamp(max=1.0)
        gl = LAWS["lichen"](w, n) * l * (1.0 - cover)
        gm = LAWS["moss"](w, n) * m * (1.0 - cover)
        dry = p["evap"] * heat * w * (1.0 - 0.5 * cover)
        new["water"] = (w + 0.33 * (rain * torch.sigmoid(4.0 * (1.0 - w)) - dry - p["uptake"] * (gl + gm))).clamp(0, 2)
        new["lichen"] = l + 0.33 * (gl - p["death"] * l)
        new["moss"] = m + 0.33 * (gm - p["death"] * torch.exp(-w) * m)
        new["nitrogen"] = (n + 0.33 * (p["fix"] * l - p["leach"] * n * w)).clamp(min=0)
    return new


def raster(low, high):
    """Column-major raster, as exported."""
    return (low + (high - low) * torch.rand(COLS, ROWS, device=DEVICE)).t()


def clock():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    torch.manual_seed(13)
    state = {"water": raster(0.2, 0.9), "lichen": raster(0.05, 0.2),
             "moss": raster(0.02, 0.3), "nitrogen": raster(0.1, 0.6)}
    rains = torch.rand(64, device=DEVICE) * 0.4
    heats = 0.5 + torch.rand(64, device=DEVICE)
    half = STEPS // 2
    t0 = clock()
    for step in range(STEPS):
        if step == half:
            t0 = clock()
        state = day(state, rains[step % 64], heats[step % 64])
        if step % 100 == 50:
            print(f"day {step}: moss corner {state['moss'][0, 0].item():.4f}")
    ms = (clock() - t0) * 1e3 / (STEPS - half)
    print("means", {k: round(v.mean().item(), 5) for k, v in state.items()})
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()

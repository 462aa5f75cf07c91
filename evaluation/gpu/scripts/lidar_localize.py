"""Monte Carlo localisation of a vehicle inside a large voxel likelihood volume."""
import os
import math
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"

VOX = (640, 640, 768)
CELL = 0.25
PARTICLES = 4096
BEAMS = 96
SECONDS = float(os.environ.get("SECONDS", "25.0"))


def build_volume():
    """Distance-to-nearest-surface volume, in metres."""
    z, y, x = (torch.arange(n, device=device, dtype=torch.float32) for n in VOX)
    vol = torch.empty(VOX, device=device)
    for k in range(VOX[0]):
        street = (torch.sin(x / 37.0)[None, :] * torch.cos(y / 29.0)[:, None]).abs()
        vol[k] = street * 4.0 + (z[k] - VOX[0] / 2).abs() * 0.002
    return vol


def beam_pattern(gen):
    az = torch.rand(BEAMS, generator=gen, device=device) * 2 * math.pi
    el = (torch.rand(BEAMS, generator=gen, device=device) - 0.5) * 0.3
    return torch.stack([az.cos() * el.cos(), az.sin() * el.cos(), el.sin()], -1)


def predict(state, control, noise):
    heading = state[:, 3] + control[1] + 0.01 * noise[:, 3]
    xy = state[:, :2] + control[0] * torch.stack([heading.cos(), heading.sin()], -1)
    xyz = torch.cat([xy, state[:, 2:3]], -1) + 0.05 * noise[:, :3]
    return torch.cat([xyz, heading[:, None]], -1)


def update(volume, state, control, noise, directions, ranges):
    state = predict(state, control, noise)
    c, s = state[:, 3].cos(), state[:, 3].sin()
    hits = directions * ranges[:, None]
    px = state[:, 0:1] + c[:, None] * hits[:, 0] - s[:, None] * hits[:, 1]
    py = state[:, 1:2] + s[:, None] * hits[:, 0] + c[:, None] * hits[:, 1]
    pz = state[:, 2:3] + hits[:, 2]
    ix = (px / CELL).long().remainder(VOX[2])
    iy = (py / CELL).long().remainder(VOX[1])
    iz = (pz / CELL).long().clamp(0, VOX[0] - 1)
    dist = volume[iz, iy, ix]
    loglik = -0.5 * (dist / 0.4).square().clamp(max=9.0).sum(-1)
    w = torch.softmax(loglik, dim=0)
    ess = 1.0 / w.square().sum()
    cdf = torch.cumsum(w, 0)
    u = (torch.arange(PARTICLES, device=state.device) + noise[0, 0].sigmoid()) / PARTICLES
    pick = torch.searchsorted(cdf, u).clamp(max=PARTICLES - 1)
    mean = (w[:, None] * state).sum(0)
    return state[pick], mean, ess


@torch.no_grad()
def main():
    gen = torch.Generator(device=device).manual_seed(4)
    volume = build_volume()
    filt = torch.compile(update, mode="reduce-overhead")
    directions = beam_pattern(gen)
    state = torch.zeros(PARTICLES, 4, device=device)
    state[:, :2] = 80.0
    state[:, 2] = CELL * VOX[0] / 2
    control = torch.tensor([0.4, 0.01], device=device)

    def scan(state):
        noise = torch.randn(PARTICLES, 4, generator=gen, device=device)
        ranges = torch.rand(BEAMS, generator=gen, device=device) * 40 + 2
        out, mean, ess = filt(volume, state, control, noise, directions, ranges)
        return out.clone(), mean.clone(), ess.clone()

    for _ in range(6):
        state, mean, ess = scan(state)
    print("start", [round(v, 2) for v in mean.tolist()])

    n, t0 = 0, time.perf_counter()
    while time.perf_counter() - t0 < SECONDS:
        for _ in range(200):
            state, mean, ess = scan(state)
        n += 200
        eff = ess.item()
    took = time.perf_counter() - t0
    print(f"{n} scans, {1e3 * took / n:.3f} ms per scan, effective particles {eff:.0f}")
    print("end", [round(v, 2) for v in mean.tolist()])


if __name__ == "__main__":
    main()

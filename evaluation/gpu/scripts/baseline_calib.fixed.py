import os
import time

import torch

DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS = int(os.environ.get("STEPS", "300"))
SMALL = os.environ.get("SMALL") == "1"

ANT = 8 if SMALL else 96                 # antennas of the array
CHAN = 32 if SMALL else 4096             # frequency channels
BASE = ANT * (ANT - 1) // 2
RATE = 0.05


def observe(*shape):
    v = torch.randn(*shape, dtype=torch.complex64, device=DEV)
    return v.real.contiguous(), v.imag.contiguous()


def unit_gains():
    return torch.view_as_real(torch.ones(ANT, 1, dtype=torch.complex64, device=DEV))


def per_baseline(gains, one, two):
    return mul_conj(gains[one].unbind(-1), gains[two].unbind(-1))


def fringe(delay, freq):
    angle = 6.2831853 * delay * freq
    return angle.cos(), angle.sin()


def mul(a, b):
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def mul_conj(a, b):
    return a[0] * b[0] + a[1] * b[1], a[1] * b[0] - a[0] * b[1]


def sub(a, b):
    return a[0] - b[0], a[1] - b[1]


def power(v):
    return v[0].square() + v[1].square()


def scale(v, w):
    return v[0] * w, v[1] * w


def over_channels(v):
    return torch.stack([p.mean(dim=1, keepdim=True) for p in v], dim=-1)


@torch.compile
def solve_step(vis, sky, gains, one, two, delay, freq, flags):
    aligned = mul(vis, fringe(delay, freq))
    predicted = mul(sky, per_baseline(gains, one, two))
    resid = sub(aligned, predicted)
    chi = power(resid)
    robust = flags / (1.0 + chi / 4.0)
    resid = scale(resid, robust)
    corr = mul_conj(resid, sky)
    slope = over_channels(corr)
    return slope, (chi * flags).mean()


def update(gains, slope, one, two):
    delta = torch.zeros_like(gains)
    delta.index_add_(0, one, slope)
    delta.index_add_(0, two, slope)
    return gains + RATE * delta / ANT


def sync():
    if DEV.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(77)
    one, two = torch.triu_indices(ANT, ANT, offset=1, device=DEV)
    freq = torch.linspace(0.9, 1.7, CHAN, device=DEV).view(1, CHAN)
    delay = torch.randn(BASE, 1, device=DEV) * 0.02
    flags = (torch.rand(BASE, CHAN, device=DEV) > 0.04).float()
    nights = [observe(BASE, CHAN) for _ in range(3)]
    sky = scale(observe(BASE, CHAN), 0.7)
    gains = unit_gains()

    chi = torch.zeros((), device=DEV)
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            if step == STEPS // 2:
                sync()
                t0 = time.perf_counter()
            slope, c = solve_step(nights[step % 3], sky, gains, one, two, delay, freq, flags)
            gains = update(gains, slope, one, two)
            chi = 0.9 * chi + 0.1 * c
    sync()
    ms = (time.perf_counter() - t0) * 1e3 / (STEPS - STEPS // 2)
    print(f"running chi2 {chi.item():.5f}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()

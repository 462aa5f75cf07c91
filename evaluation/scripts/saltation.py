"""Sand grains hopping over a dune crest in turbulent wind (Langevin velocities along each trajectory)."""
import os

import torch

GRAINS = 120000
DT = 2.0e-3
U_STAR, Z0, KAPPA = 0.38, 3.0e-5, 0.41
G, TAU_P = 9.81, 0.11


def crest(x):
    return 0.4 * torch.exp(-((x - 6.0) / 3.0) ** 2)


def wind(x, z):
    """Log profile over the local bed, speeded up on the crest."""
    height = (z - crest(x)).clamp_min(2 * Z0)
    return U_STAR / KAPPA * torch.log(height / Z0) * (1 + 0.3 * torch.exp(-((x - 5.2) / 2.0) ** 2))


@torch.compile
def hop(x, z, u, w, gu, gw):
    sigma_u, sigma_w = 2.4 * U_STAR, 1.2 * U_STAR
    t_l = 0.4 * (z - crest(x)).clamp_min(1e-3) / sigma_w + 0.02
    fade = torch.exp(-DT / t_l)
    kick = torch.sqrt(1 - fade * fade)
    gu = fade * gu + kick * sigma_u * torch.randn_like(gu)
    gw = fade * gw + kick * sigma_w * torch.randn_like(gw)
    u = u + DT * (wind(x, z) + gu - u) / TAU_P
    w = w + DT * ((gw - w) / TAU_P - G)
    x = x + DT * u
    z = z + DT * w
    bed = crest(x)
    hit = z < bed
    w = torch.where(hit, w.abs() * 0.55, w)
    u = torch.where(hit, u * 0.6, u)
    z = torch.where(hit, bed, z)
    return x.remainder(14.0), z, u, w, gu, gw


def release(n):
    x = 14.0 * torch.rand(n)
    z = crest(x) + 0.02 * torch.rand(n)
    u = 1.0 + 0.5 * torch.rand(n)
    w = 1.2 * torch.rand(n)
    return x, z, u, w, torch.zeros(n), torch.zeros(n)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(52)
    state = release(GRAINS)
    flux = torch.zeros(28)
    with torch.no_grad():
        for n in range(steps):
            state = hop(*state)
            if n % 10 == 0:
                x, u = state[0], state[2]
                flux += torch.histc(x[u > 0], bins=28, min=0.0, max=14.0)
    x, z, u = state[:3]
    print(f"{steps * DT:.2f} s, mean hop height {(z - crest(x)).mean() * 1e3:.1f} mm, speed {u.mean():.2f} m/s, busiest bin {int(flux.argmax())}")


if __name__ == "__main__":
    main()

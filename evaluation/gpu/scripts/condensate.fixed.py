"""Split-step evolution of a two-component condensate in a rotating trap."""
import os
import math
import time

import torch

device = torch.device("cuda")
N = 1024
BATCH = 4
BOX = 20.0
DT = 2e-4
STEPS = int(os.environ.get("STEPS", "7000"))


class Trap:
    def __init__(self):
        x = torch.linspace(-BOX / 2, BOX / 2, N, device=device)
        self.xx, self.yy = torch.meshgrid(x, x, indexing="ij")
        k = torch.fft.fftfreq(N, d=BOX / N, device=device) * 2 * math.pi
        kx, ky = torch.meshgrid(k, k, indexing="ij")
        self.kinetic = torch.exp(-0.5j * DT * (kx * kx + ky * ky))
        self.potential = 0.5 * (self.xx ** 2 + 1.2 * self.yy ** 2)


def start_state(trap, seed):
    gen = torch.Generator(device=device).manual_seed(seed)
    env = torch.exp(-0.25 * (trap.xx ** 2 + trap.yy ** 2))
    noise = torch.rand(BATCH, N, N, generator=gen, device=device)
    psi = env * torch.exp(2j * math.pi * 0.05 * noise)
    return psi / psi.abs().square().sum(dim=(-2, -1), keepdim=True).sqrt() * 60


@torch.compile
def advance(a, b, potential, kinetic, coupling, rabi):
    a, b = torch.view_as_real(a), torch.view_as_real(b)
    ar, ai, br, bi = a[..., 0], a[..., 1], b[..., 0], b[..., 1]
    na = ar * ar + ai * ai
    nb = br * br + bi * bi
    fa = -DT * (potential + na + coupling * nb)
    fb = -DT * (potential + nb + coupling * na)
    ca, sa, cb, sb = fa.cos(), fa.sin(), fb.cos(), fb.sin()
    ar, ai = ar * ca - ai * sa, ar * sa + ai * ca
    br, bi = br * cb - bi * sb, br * sb + bi * cb
    c, s = math.cos(rabi * DT), math.sin(rabi * DT)
    mar, mai = ar * c + s * bi, ai * c - s * br
    mbr, mbi = br * c + s * ai, bi * c - s * ar
    loss = 1.0 - 1e-6 * (mar * mar + mai * mai + mbr * mbr + mbi * mbi)
    ma = torch.stack((mar * loss, mai * loss), dim=-1)
    mb = torch.stack((mbr * loss, mbi * loss), dim=-1)
    return torch.fft.ifft2(spread(ma, kinetic)), torch.fft.ifft2(spread(mb, kinetic))


def spread(m, kinetic):
    f = torch.view_as_real(torch.fft.fft2(torch.view_as_complex(m)))
    k = torch.view_as_real(kinetic)
    re = f[..., 0] * k[..., 0] - f[..., 1] * k[..., 1]
    im = f[..., 0] * k[..., 1] + f[..., 1] * k[..., 0]
    return torch.view_as_complex(torch.stack((re, im), dim=-1))


@torch.no_grad()
def main():
    trap = Trap()
    a = start_state(trap, 1)
    b = start_state(trap, 2) * 0.3
    begin = time.perf_counter()
    for step in range(STEPS):
        a, b = advance(a, b, trap.potential, trap.kinetic, 0.95, 2.0)
        if (step + 1) % 1000 == 0:
            na = a.abs().square().sum().item() / BATCH
            nb = b.abs().square().sum().item() / BATCH
            took = (time.perf_counter() - begin) / 1000 * 1e3
            print(f"t={(step + 1) * DT:.3f}  N_a={na:.2f}  N_b={nb:.2f}  ({took:.2f} ms per step)")
            begin = time.perf_counter()


if __name__ == "__main__":
    main()

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
    na = (a * a.conj()).real
    nb = (b * b.conj()).real
    pa = torch.exp(-1j * DT * (potential + na + coupling * nb))
    pb = torch.exp(-1j * DT * (potential + nb + coupling * na))
    a = a * pa
    b = b * pb
    mixed_a = a * math.cos(rabi * DT) - 1j * math.sin(rabi * DT) * b
    mixed_b = b * math.cos(rabi * DT) - 1j * math.sin(rabi * DT) * a
    loss = 1.0 - 1e-6 * (mixed_a * mixed_a.conj() + mixed_b * mixed_b.conj())
    a = torch.fft.ifft2(torch.fft.fft2(mixed_a * loss) * kinetic)
    b = torch.fft.ifft2(torch.fft.fft2(mixed_b * loss) * kinetic)
    return a, b


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

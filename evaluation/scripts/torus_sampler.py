"""Replica-exchange Langevin sampling of an XY-type lattice model (coupled rotors on a torus).

A ladder of temperatures is simulated in parallel; neighbouring replicas are swapped
every few sweeps and the helicity modulus is accumulated per temperature."""
import math
import os
import statistics
import time

import torch

L = 64
REPLICAS = 12
DT = 0.02


def force(theta, coupling):
    f = torch.zeros_like(theta)
    for dim in (1, 2):
        for shift in (1, -1):
            f = f - coupling * torch.sin(theta - torch.roll(theta, shift, dims=dim))
    return f


@torch.compile
def sweep(theta, momentum, temperature, friction):
    """One BAOAB-like step for every rotor of every replica."""
    momentum = momentum + 0.5 * DT * force(theta, 1.0)
    theta = theta + 0.5 * DT * momentum
    decay = torch.exp(-friction * DT)
    kick = torch.sqrt(temperature * (1.0 - decay * decay))
    momentum = decay * momentum + kick * torch.randn_like(momentum)
    theta = theta + 0.5 * DT * momentum
    theta = torch.remainder(theta + math.pi, 2 * math.pi) - math.pi
    momentum = momentum + 0.5 * DT * force(theta, 1.0)
    return theta, momentum


def energy(theta):
    e = torch.cos(theta - torch.roll(theta, 1, dims=1))
    e = e + torch.cos(theta - torch.roll(theta, 1, dims=2))
    return -e.sum(dim=(1, 2))


def exchange(theta, momentum, beta, parity, gen):
    e = energy(theta)
    swaps = 0
    order = list(range(REPLICAS))
    for i in range(parity, REPLICAS - 1, 2):
        log_ratio = float((beta[i + 1] - beta[i]) * (e[i + 1] - e[i]))
        if math.log(float(torch.rand((), generator=gen)) + 1e-12) < log_ratio:
            order[i], order[i + 1] = order[i + 1], order[i]
            swaps += 1
    return theta[order], momentum[order], swaps


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(2024)
    torch.set_num_threads(1)
    gen = torch.Generator().manual_seed(7)

    temps = torch.linspace(0.6, 1.3, REPLICAS)
    beta = 1.0 / temps
    temperature = temps.view(-1, 1, 1)
    friction = torch.full((REPLICAS, 1, 1), 1.5)
    theta = (torch.rand(REPLICAS, L, L, generator=gen) - 0.5) * 2 * math.pi
    momentum = torch.randn(REPLICAS, L, L, generator=gen)

    accepted, times = 0, []
    with torch.no_grad():
        for step in range(steps):
            t0 = time.perf_counter()
            theta, momentum = sweep(theta, momentum, temperature, friction)
            if step % 20 == 19:
                theta, momentum, n = exchange(theta, momentum, beta, (step // 20) % 2, gen)
                accepted += n
            times.append(time.perf_counter() - t0)

    e = energy(theta) / (L * L)
    print("energy/site:", " ".join(f"{v:.3f}" for v in e.tolist()))
    print(f"swaps {accepted}, kinetic T {momentum.var().item():.3f}, "
          f"{1e3 * statistics.median(times[steps // 2:]):.3f} ms/step")


if __name__ == "__main__":
    main()

"""Focusing of a bistatic sonar image: phase screen, range-Doppler taper and autofocus gradient per ping."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "20000"))
RANGE, CROSS = 160, 192


class Screen(torch.nn.Module):
    """Low-order phase error over the aperture, as a sum of a few smooth modes."""

    def __init__(self, modes=3):
        super().__init__()
        u = torch.linspace(-1, 1, CROSS)
        self.register_buffer("basis", torch.stack([u ** (k + 2) for k in range(modes)]))
        self.coef = torch.nn.Parameter(torch.zeros(modes))

    def forward(self):
        return self.coef @ self.basis


def rotate(ping, phase):
    return ping * torch.polar(torch.ones_like(phase), phase)


def taper(ping, depth):
    gain = torch.exp(-0.5 * depth * depth)[:, None]
    return ping * gain + 0.05 * ping * ping.conj() * gain


def energy(ping):
    return (ping * ping.conj()).real


def focus(ping, phase, depth):
    z = rotate(ping, phase)
    z = taper(z, depth)
    z = z - 0.1 * z * energy(z)
    z = z * (1.0 + 0.02j) + 0.01 * z.conj()
    e = energy(z)
    return -(e * e).mean() / (e.mean() ** 2)


focus_c = torch.compile(focus)


def ping_source(seed):
    g = torch.Generator().manual_seed(seed)
    while True:
        re = torch.randn(RANGE, CROSS, generator=g)
        im = torch.randn(RANGE, CROSS, generator=g)
        yield torch.complex(re, im) * 0.3


def main():
    torch.manual_seed(7)
    screen = Screen()
    opt = torch.optim.Adam(screen.parameters(), lr=1e-3)
    depth = torch.linspace(0, 2, RANGE)
    source = ping_source(3)
    bank = [next(source) for _ in range(8)]
    every = max(1, STEPS // 20)
    for step in range(1, STEPS + 1):
        loss = focus_c(bank[step % len(bank)], screen(), depth)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % every == 0:
            print(f"step {step}  contrast {-loss.item():.5f}  coef {screen.coef.detach().norm().item():.4f}")


if __name__ == "__main__":
    main()

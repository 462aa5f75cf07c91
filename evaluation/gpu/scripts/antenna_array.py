"""Phase alignment of a receiver array: rotate, weight and limit baseband samples of every element."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "12000"))
ELEMENTS, SAMPLES = 64, 1 << 19
torch.manual_seed(2)


def chirp(n):
    t = torch.arange(n, device="cuda") / n
    return torch.polar(torch.ones_like(t), 40.0 * t * t)


class Array:
    def __init__(self):
        self.taper = torch.hann_window(ELEMENTS, device="cuda")[:, None]
        self.offset = torch.rand(ELEMENTS, 1, device="cuda") * 6.28
        self.reference = chirp(SAMPLES)

    def steer(self, delta):
        angle = self.offset + delta
        return torch.polar(self.taper.clone(), angle)


@torch.compile
def align(raw, steer, reference, leak):
    turned = raw * steer
    mixed = turned * reference.conj()
    mixed = mixed - leak * turned
    mixed = mixed + 0.25 * raw
    doubled = mixed * mixed
    mixed = mixed - 0.05 * doubled * mixed.conj()
    power = mixed.real.square() + mixed.imag.square()
    return (mixed * (1.0 / (1.0 + power))).mean(0)


@torch.no_grad()
def main():
    array = Array()
    raw = torch.randn(ELEMENTS, SAMPLES, dtype=torch.complex64, device="cuda")
    leak = torch.randn(ELEMENTS, 1, dtype=torch.complex64, device="cuda") * 0.1
    delta = torch.zeros((), device="cuda")
    track = torch.zeros(SAMPLES, device="cuda")
    for step in range(STEPS):
        beam = align(raw, array.steer(delta), array.reference, leak)
        track.lerp_(beam.abs(), 0.1)
        delta += 0.003
        if step % 1000 == 0:
            print("sweep", step, "beam", round(track.mean().item(), 6))


main()

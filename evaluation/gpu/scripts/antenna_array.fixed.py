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


def times(a, b):
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def parts(z):
    pair = torch.view_as_real(z)
    return pair[..., 0], pair[..., 1]


@torch.compile
def align_parts(raw, steer, reference, leak):
    turned = times(raw, steer)
    mixed = times(turned, (reference[0], -reference[1]))
    leaked = times(leak, turned)
    mixed = mixed[0] - leaked[0] + 0.25 * raw[0], mixed[1] - leaked[1] + 0.25 * raw[1]
    doubled = times(mixed, mixed)
    back = times(doubled, (mixed[0], -mixed[1]))
    mixed = mixed[0] - 0.05 * back[0], mixed[1] - 0.05 * back[1]
    power = mixed[0].square() + mixed[1].square()
    gain = 1.0 / (1.0 + power)
    return (mixed[0] * gain).mean(0), (mixed[1] * gain).mean(0)


def align(raw, steer, reference, leak):
    return torch.complex(*align_parts(parts(raw), parts(steer), parts(reference), parts(leak)))


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

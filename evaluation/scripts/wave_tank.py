"""Shallow basin with an absorbing beach: a wave maker on one side, gauges on the other."""
import argparse
import dataclasses

import torch


@dataclasses.dataclass(frozen=True)
class Basin:
    cells: int = 512
    courant: float = 0.4
    beach: int = 48
    drag: float = 0.02

    def sponge(self):
        ramp = torch.linspace(0, 1, self.beach).square()
        coat = torch.ones(self.cells, self.cells)
        coat[:, -self.beach:] -= 0.2 * ramp
        return coat


STENCIL = torch.tensor([[0.05, 0.2, 0.05], [0.2, -1.0, 0.2], [0.05, 0.2, 0.05]])


def laplacian(u):
    return 4 * torch.nn.functional.conv2d(u[None, None], STENCIL[None, None], padding=1)[0, 0]


class Tank:
    def __init__(self, basin):
        self.basin = basin
        self.coat = basin.sponge()
        self.paddle = torch.exp(-torch.linspace(0, 60, basin.cells))[None, :] * 0.05
        self.advance = torch.compile(self.tick)

    def tick(self, now, before, phase):
        push = self.basin.courant ** 2 * laplacian(now)
        speed = now - before
        breaking = torch.tanh(now) * torch.exp(-now.square()) + torch.sigmoid(speed) * speed.abs()
        bottom = speed * speed.abs() / (1 + now.square()).sqrt()
        ahead = now + (1 - self.basin.drag) * speed + push - 1e-4 * (breaking + bottom)
        return ahead * self.coat + torch.sin(phase) * self.paddle


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=40000)
    parser.add_argument("--gauge-every", type=int, default=500)
    args = parser.parse_args()
    tank = Tank(Basin())
    before = torch.zeros(512, 512)
    now = torch.zeros(512, 512)
    clock = torch.zeros(())
    gauges = []
    with torch.no_grad():
        for tick in range(args.ticks):
            now, before = tank.advance(now, before, clock), now
            clock += 0.05
            if (tick + 1) % args.gauge_every == 0:
                gauges.append(now[:, 400].abs().max().item())
    print("highest at the gauges", max(gauges, default=0.0))


if __name__ == "__main__":
    main()

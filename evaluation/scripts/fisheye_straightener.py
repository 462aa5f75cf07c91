"""Straightens fisheye views: for each pixel of the flat view, where in the fisheye picture it came from."""
import argparse

import torch
from torch import nn


class Undistort(nn.Module):
    def __init__(self, height, width, rounds=12, tolerance=1e-9):
        super().__init__()
        y, x = torch.meshgrid(torch.linspace(-0.8, 0.8, height), torch.linspace(-1, 1, width), indexing="ij")
        self.register_buffer("x", x)
        self.register_buffer("y", y)
        self.rounds, self.tolerance = rounds, tolerance

    def forward(self, lens):
        k1, k2, k3, p1, p2 = lens.unbind()
        u, v = self.x, self.y
        for _ in range(self.rounds):
            r2 = u * u + v * v
            radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3))
            du = 2 * p1 * u * v + p2 * (r2 + 2 * u * u)
            dv = p1 * (r2 + 2 * v * v) + 2 * p2 * u * v
            new_u, new_v = (self.x - du) / radial, (self.y - dv) / radial
            moved = ((new_u - u).square() + (new_v - v).square()).amax()
            u, v = new_u, new_v
            if moved < self.tolerance ** 2:
                break
        return torch.stack([u, v], -1)


def cameras(count):
    lens = torch.tensor([-0.21, 0.06, -0.01, 0.002, -0.001])
    for _ in range(count):
        yield lens * (1 + 0.05 * torch.randn(5))


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--views", type=int, default=3000)
    parser.add_argument("--height", type=int, default=240)
    parser.add_argument("--width", type=int, default=320)
    args = parser.parse_args()
    torch.manual_seed(17)
    undistort = torch.compile(Undistort(args.height, args.width))
    far = torch.zeros(())
    for number, lens in enumerate(cameras(args.views)):
        far = torch.maximum(far, undistort(lens).abs().amax())
        if number % 250 == 0:
            print(f"view {number}: up to {far:.3f} out", flush=True)


if __name__ == "__main__":
    main()

"""Find the curvatures of a camera lens by tracing rays and descending the spot size."""
import argparse
from dataclasses import dataclass

import torch

GLASS = (1.0, 1.62, 1.0, 1.58, 1.0, 1.70, 1.52, 1.0, 1.61, 1.0)


@dataclass
class Bundle:
    height: torch.Tensor
    slope: torch.Tensor
    colour: torch.Tensor


@torch.compile(fullgraph=True)
def spot(height, slope, colour, curvature, gap):
    for surface in range(len(GLASS) - 1):
        before = GLASS[surface] + 0.01 * (GLASS[surface] - 1) / colour.square()
        after = GLASS[surface + 1] + 0.01 * (GLASS[surface + 1] - 1) / colour.square()
        bend = curvature[surface]
        sag = bend * height.square() / (1 + torch.sqrt((1 - (bend * height).square()).clamp(min=1e-4)))
        height = height + slope * sag
        normal = torch.asin((bend * height).clamp(-0.99, 0.99))
        incoming = torch.atan(slope) + normal
        outgoing = torch.asin((before / after * torch.sin(incoming)).clamp(-0.99, 0.99))
        slope = torch.tan(outgoing - normal)
        height = height + slope * (gap[surface] - sag)
    return (height - height.mean()).square().mean() + 1e-3 * curvature.square().sum()


class Designer:
    def __init__(self, rays, lr):
        generator = torch.Generator().manual_seed(5)
        self.bundle = Bundle(
            torch.rand(rays, generator=generator) * 2 - 1,
            torch.randn(rays, generator=generator) * 0.02,
            torch.rand(rays, generator=generator) * 0.3 + 0.4,
        )
        surfaces = len(GLASS) - 1
        self.curvature = torch.nn.Parameter(torch.randn(surfaces, generator=generator) * 0.05)
        self.gap = torch.nn.Parameter(torch.full((surfaces,), 0.5))
        self.optimizer = torch.optim.RMSprop([self.curvature, self.gap], lr=lr)

    def improve(self):
        b = self.bundle
        size = spot(b.height, b.slope, b.colour, self.curvature, self.gap)
        self.optimizer.zero_grad()
        size.backward()
        self.optimizer.step()
        return size.detach()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=25000)
    parser.add_argument("--rays", type=int, default=12000)
    parser.add_argument("--lr", type=float, default=1e-4)
    args = parser.parse_args()
    designer = Designer(args.rays, args.lr)
    for number in range(args.designs):
        size = designer.improve()
        if number % 1000 == 0:
            print(f"design {number}: spot {size.sqrt():.5f}")


if __name__ == "__main__":
    main()

"""Forces at the feet of a walking robot for many terrain samples at once."""
import argparse
from functools import partial

import torch


def terrain(x, y, ridge):
    return 0.1 * torch.sin(ridge * x) * torch.cos(ridge * y)


def normals(x, y, ridge):
    dx = 0.1 * ridge * torch.cos(ridge * x) * torch.cos(ridge * y)
    dy = -0.1 * ridge * torch.sin(ridge * x) * torch.sin(ridge * y)
    scale = (dx.square() + dy.square() + 1).rsqrt()
    return -dx * scale, -dy * scale, scale


def touching(depth):
    return torch.nonzero(depth > 0).squeeze(1)


def contact_forces(x, y, z, u, v, w, *, ridge, stiffness, damping, friction):
    depth = terrain(x, y, ridge) - z
    nx, ny, nz = normals(x, y, ridge)
    along = u * nx + v * ny + w * nz
    press = torch.nn.functional.softplus(stiffness * depth - damping * along)
    sx, sy, sz = u - along * nx, v - along * ny, w - along * nz
    slip = (sx.square() + sy.square() + sz.square() + 1e-9).sqrt()
    feet_down = touching(depth)
    grip = friction * press * torch.tanh(slip / 0.01) / slip
    wear = torch.exp(-slip) * torch.sigmoid(press)
    grip = grip * torch.exp(-wear)
    forces = []
    for n, s in ((nx, sx), (ny, sy), (nz, sz)):
        force = press * n - grip * s
        forces.append(torch.zeros_like(force).index_copy(0, feet_down, force[feet_down]))
    return forces


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=20000)
    parser.add_argument("--samples", type=int, default=60000)
    args = parser.parse_args()
    torch.manual_seed(2)
    solve = torch.compile(partial(contact_forces, ridge=3.0, stiffness=40.0, damping=2.0, friction=0.6))
    place = [torch.randn(args.samples), torch.randn(args.samples), 0.05 * torch.randn(args.samples)]
    speed = [torch.zeros(args.samples) for _ in range(3)]
    with torch.no_grad():
        for _ in range(args.ticks):
            force = solve(*place, *speed)
            torch._foreach_mul_(speed, 0.98)
            torch._foreach_add_(speed, force, alpha=0.002)
            speed[2].sub_(0.002 * 9.81)
            torch._foreach_add_(place, speed, alpha=0.002)
            place[2].clamp_(-0.2, 0.2)
    print("mean height", place[2].mean().item())


if __name__ == "__main__":
    main()

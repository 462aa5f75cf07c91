"""Drop a brick of jelly on the floor and watch how it wobbles."""
import argparse

import torch

from jelly import Solver, brick


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--cells", type=int, nargs=3, default=(16, 12, 10))
    parser.add_argument("--dt", type=float, default=2e-4)
    args = parser.parse_args()
    torch.manual_seed(0)
    body = brick(*args.cells)
    body.places = body.places + torch.tensor([0.0, 0.0, 0.05]) + 0.0005 * torch.randn(body.places.shape)
    solver = Solver(body, args.dt)
    places, speeds = body.places, body.speeds
    with torch.no_grad():
        for step in range(args.steps):
            places, speeds = solver.step(places, speeds)
            if step % 500 == 0:
                print(f"{step * args.dt:6.3f} s  top {float(places[:, 2].max()):.4f} m")


if __name__ == "__main__":
    main()

"""How fast do nearby double pendulums part? Follows two bundles and compares them frame by frame."""
import argparse

import torch


@torch.compile
def frames(angle, speed, count, dt):
    for _ in range(count):
        delta = angle[0] - angle[1]
        s, c = torch.sin(delta), torch.cos(delta)
        below = 2 - c * c
        first = (-s * c * speed[0] ** 2 - s * speed[1] ** 2 + 9.8 * (torch.sin(angle[1]) * c - 2 * torch.sin(angle[0])))
        second = (s * c * speed[1] ** 2 + 2 * s * speed[0] ** 2 + 19.6 * (torch.sin(angle[0]) * c - torch.sin(angle[1])))
        speed = speed + dt * torch.stack((first, second)) / below
        speed = speed * torch.exp(-1e-4 * speed * speed)
        angle = angle + dt * speed
        yield angle, speed


def bundle(size, spread):
    angle = 2.0 + spread * torch.randn(2, size)
    return angle, torch.zeros(2, size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--films", type=int, default=4000)
    parser.add_argument("--size", type=int, default=20000)
    parser.add_argument("--count", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(1)
    angle, speed = bundle(args.size, 1e-3)
    with torch.no_grad():
        for film in range(args.films):
            parting = torch.zeros(())
            for angle, speed in frames(angle, speed, args.count, 0.004):
                parting = torch.maximum(parting, angle[0].std())
            if film % 200 == 0:
                print(f"film {film}: parted by {parting.item():.4f}")


if __name__ == "__main__":
    main()

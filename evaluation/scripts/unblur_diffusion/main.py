"""Train a cold diffusion model that removes blur from small pictures."""
import argparse
import random

import torch

from unblur import Unblur


def schedule(count, radii, seed=2):
    draw = random.Random(seed)
    order = list(range(1, radii + 1))
    while count > 0:
        draw.shuffle(order)
        yield from order[:count]
        count -= radii


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=4000)
    parser.add_argument("--radii", type=int, default=20)
    parser.add_argument("--side", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Unblur(radii=args.radii)
    step = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pictures = torch.rand(64, 3, args.side, args.side)
    for n, radius in enumerate(schedule(args.updates, args.radii), 1):
        rows = torch.randint(0, len(pictures), (4,))
        loss = step(pictures[rows], radius, torch.full((4,), radius))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if n % 250 == 0:
            print(f"update {n}: {loss.item():.4f}, corner off by {model.last_gap:+.3f}")


if __name__ == "__main__":
    main()

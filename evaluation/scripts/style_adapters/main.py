"""Draw with a small diffusion model; every job brings an adapter of its own style."""
import argparse

import torch

from studio.adapters import library
from studio.painter import Painter


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1500)
    parser.add_argument("--noise-steps", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(0)
    painter, styles = Painter(), library()
    names = sorted(styles)
    for job in range(args.jobs):
        style = names[job % len(names)]
        painter.wear(styles[style])
        picture = painter.draw(torch.randn(448, 96), args.noise_steps)
        if job % 50 == 49:
            print(job + 1, style, f"{picture.std().item():.3f}")


if __name__ == "__main__":
    main()

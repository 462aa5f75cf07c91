"""Beads in a row of optical traps whose lasers tremble, for the calibration of the traps' stiffness."""
import argparse
import os

import torch

TRAPS, BEADS = 300, int(os.environ.get("BEADS", 400))


class Experiment:
    def __init__(self, dt=0.004, tremble=0.05, seed=17):
        self.dice = torch.Generator().manual_seed(seed)
        self.dt, self.tremble = dt, tremble
        self.depth = 3 + torch.rand(TRAPS, 1, generator=self.dice)
        self.x = torch.randn(TRAPS, BEADS, generator=self.dice) * 0.5
        self.v = torch.randn(TRAPS, BEADS, generator=self.dice)

    def aim(self):
        """Where each laser points just now."""
        return self.tremble * torch.randn(TRAPS, 1, generator=self.dice)

    def advance(self, x, v, substeps=4):
        for _ in range(substeps):
            y = x - self.aim()
            trap = -self.depth * y / (1 + y.square()).square()
            wall = 0.02 / (x + 3).clamp_min(0.2).square() - 0.02 / (3 - x).clamp_min(0.2).square()
            # Faxen's correction: drag is greater near the wall
            gap = 0.5 / (1 + x.abs())
            free = 1 - 0.5625 * gap + 0.125 * gap * gap * gap - 0.0625 * gap.square().square()
            v = v + self.dt * (trap + wall - 0.8 * v / free)
            x = (x + self.dt * v).clamp(-3, 3)
        return x, v


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=8000)
    args = parser.parse_args()
    tweezers = Experiment()
    advance = torch.compile(tweezers.advance)
    with torch.inference_mode():
        for frame in range(args.frames):
            tweezers.x, tweezers.v = advance(tweezers.x, tweezers.v)
            if frame % 200 == 199:
                print(f"frame {frame + 1}: spread {tweezers.x.std().item():.3f}")


if __name__ == "__main__":
    main()

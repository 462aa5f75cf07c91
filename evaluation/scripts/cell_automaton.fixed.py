import argparse

import torch
import torch.nn.functional as F


class Automaton:
    def __init__(self, size=48, channels=8):
        self.grid = torch.rand(channels, size, size)
        self.weight = torch.randn(channels, 1, 1)
        self.alive = []
        self.advance = torch.compile(self._advance, dynamic=True)

    def _advance(self, grid):
        p = F.pad(grid, (1, 1, 1, 1), mode="circular")
        total = sum(
            p[:, i : i + grid.shape[1], j : j + grid.shape[2]] for i in range(3) for j in range(3)
        )
        new = torch.sigmoid(self.weight * torch.tanh(total)) * torch.exp(-grid.square())
        alive = (new > 0.5).float().mean().item()
        return torch.sin(new) + 0.5 * torch.cos(total - new), alive

    def run(self, steps):
        for _ in range(steps):
            self.grid, alive = self.advance(self.grid)
            self.alive.append(alive)
            if len(self.alive) > 200:
                del self.alive[:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100000)
    args = parser.parse_args()
    torch.manual_seed(0)
    automaton = Automaton()
    with torch.no_grad():
        automaton.run(args.steps)
    print(automaton.grid.mean().item())


if __name__ == "__main__":
    main()

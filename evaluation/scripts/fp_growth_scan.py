"""Follow a threshold through sorted levels until little is left."""
import argparse

import torch


class Levels:
    def __init__(self, rows, columns):
        self.values = torch.rand(rows, columns)
        self.scan = torch.compile(self._scan)

    def _scan(self, offset):
        level = 0.0
        x = torch.sin(self.values * 3 + offset) * torch.exp(-self.values)
        while bool((x > level).float().mean() > 0.2):
            x = torch.tanh(x) * 1.05 + 0.1 * torch.cos(x) * torch.sigmoid(x)
            level += 0.25
        return x, level


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scans", type=int, default=45000)
    ns = ap.parse_args()
    torch.manual_seed(0)
    levels = Levels(128, 512)
    offsets = torch.rand(16).unbind()
    with torch.no_grad():
        for number in range(ns.scans):
            x, level = levels.scan(offsets[number % 16])
    print(level, x.mean().item())


if __name__ == "__main__":
    main()

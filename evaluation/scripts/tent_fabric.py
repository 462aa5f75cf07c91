"""Sags a tent: springs on a sparse mesh, relaxed by preconditioned descent."""
import argparse

import torch


def grid_laplacian(side):
    idx = torch.arange(side * side).view(side, side)
    pairs = torch.cat([
        torch.stack([idx[:, :-1].flatten(), idx[:, 1:].flatten()]),
        torch.stack([idx[:-1].flatten(), idx[1:].flatten()]),
    ], dim=1)
    both = torch.cat([pairs, pairs.flip(0)], dim=1)
    n = side * side
    degree = torch.bincount(both[0], minlength=n).float()
    diag = torch.arange(n).expand(2, n)
    indices = torch.cat([both, diag], dim=1)
    values = torch.cat([-torch.ones(both.shape[1]), degree])
    return torch.sparse_coo_tensor(indices, values, (n, n)).coalesce().to_sparse_csr()


class Tent:
    def __init__(self, side):
        self.stiffness = grid_laplacian(side)
        self.relax = torch.compile(self._relax)

    def _relax(self, height, load):
        stretch = torch.tanh(height) + 0.1 * torch.sin(height)
        pull = self.stiffness @ stretch
        lift = torch.exp(-height * height) * load
        new = height - 0.05 * pull + lift * 0.01
        return new * torch.sigmoid(8.0 + new)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=160000)
    ap.add_argument("--side", type=int, default=24)
    args = ap.parse_args()
    torch.manual_seed(60)
    tent = Tent(args.side)
    height = torch.rand(args.side ** 2, 8)
    load = torch.rand(args.side ** 2, 8) * 0.2
    for step in range(args.steps):
        height = tent.relax(height, load)
        if step % 500 == 0:
            print(f"{step:6d} mean height {height.mean():.5f}")


if __name__ == "__main__":
    main()

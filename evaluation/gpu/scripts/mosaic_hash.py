"""Feature-grid colour model for mosaics; early rejection of dull samples."""
import argparse

import torch
from torch import nn

DEVICE = "cuda"


class Grid(nn.Module):
    def __init__(self, levels=8, entries=2 ** 16, width=4):
        super().__init__()
        self.table = nn.Parameter(0.1 * torch.randn(levels, entries, width))
        self.levels, self.entries = levels, entries

    def forward(self, xy):
        parts = []
        for level in range(self.levels):
            cell = (xy * 2 ** (level + 4)).long()
            key = (cell[:, 0] * 73_856_093 ^ cell[:, 1] * 19_349_663) % self.entries
            parts.append(self.table[level][key])
        return torch.cat(parts, dim=-1)


class Colour(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = Grid()
        self.dull = nn.Linear(32, 1)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 3))

    def select(self, feats):
        chance = torch.sigmoid(self.dull(feats)).squeeze(-1)
        return torch.nonzero(chance > 0.45).squeeze(-1)

    def forward(self, xy):
        feats = self.grid(xy)
        rows = self.select(feats)
        if rows.numel() == 0:
            return feats.new_zeros(xy.shape[0], 3)
        out = feats.new_zeros(xy.shape[0], 3)
        return out.index_copy(0, rows, torch.sigmoid(self.mlp(feats[rows])))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=3000)
    args = ap.parse_args()
    torch.manual_seed(19)
    torch.autograd.set_detect_anomaly(True)
    model = Colour().to(DEVICE)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    paint = torch.compile(model)
    for step in range(args.steps):
        xy = torch.rand(16384, 2, device=DEVICE)
        wanted = torch.stack([xy[:, 0], xy[:, 1], (xy.sum(1) * 9).sin() * 0.5 + 0.5], dim=-1)
        loss = (paint(xy) - wanted).square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if step % 500 == 0:
            print(f"step {step:5d} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()

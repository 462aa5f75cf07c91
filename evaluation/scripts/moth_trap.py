"""Learns the moths of a light trap from a season of night pictures."""
import argparse
import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class MothNights(Dataset):
    def __init__(self, pictures, side=40, kinds=9, seed=6):
        rng = np.random.default_rng(seed)
        self.kind = rng.integers(0, kinds, pictures)
        self.wings = rng.random((kinds, side, side)).astype(np.float32)
        self.side, self.rng = side, rng

    def __len__(self):
        return len(self.kind)

    def turned(self, picture, angle):
        middle, out = self.side / 2, np.zeros_like(picture)
        c, s = math.cos(angle), math.sin(angle)
        for row in range(self.side):
            across = np.arange(self.side) - middle
            y = np.clip(c * (row - middle) - s * across + middle, 0, self.side - 1).astype(int)
            x = np.clip(s * (row - middle) + c * across + middle, 0, self.side - 1).astype(int)
            out[row] = picture[y, x]
        return out

    def __getitem__(self, index):
        kind = self.kind[index]
        picture = self.turned(self.wings[kind], self.rng.uniform(0, 2 * math.pi))
        night = picture * self.rng.uniform(0.4, 1.2) + self.rng.normal(0, 0.1, picture.shape)
        return torch.from_numpy(night.astype(np.float32))[None], int(kind)


class MothNet(nn.Module):
    def __init__(self, kinds=9):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2), nn.BatchNorm2d(8), nn.Hardswish(),
            nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16), nn.Hardswish())
        self.kinds = nn.Linear(16, kinds)

    def forward(self, x):
        return self.kinds(self.features(x).mean((2, 3)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--pictures", type=int, default=1280)
    args = parser.parse_args()
    torch.manual_seed(6)
    nights = DataLoader(MothNights(args.pictures), batch_size=32, shuffle=True, drop_last=True)
    net = MothNet()
    model = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(args.epochs):
        total = torch.zeros(())
        for pictures, kinds in nights:
            loss = nn.functional.cross_entropy(model(pictures), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: loss {total.item() / len(nights):.3f}", flush=True)


if __name__ == "__main__":
    main()

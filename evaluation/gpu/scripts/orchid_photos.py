"""Trains an orchid classifier at a resolution that changes from batch to batch."""

import argparse
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Petal(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.n1, self.n2 = nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)
        self.skip = nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.silu(self.n1(self.one(x)))
        return F.silu(self.n2(self.two(y)) + self.skip(x))


class Orchids(nn.Module):
    def __init__(self, channels: int, kinds: int = 40) -> None:
        super().__init__()
        c = channels
        self.stem = nn.Conv2d(3, c, 3, 2, 1)
        self.body = nn.Sequential(Petal(c, c, 1), Petal(c, 2 * c, 2), Petal(2 * c, 2 * c, 1), Petal(2 * c, 4 * c, 2))
        self.head = nn.Linear(4 * c, kinds)

    def forward(self, photos: torch.Tensor) -> torch.Tensor:
        x = (photos.to(self.stem.weight.dtype) / 255 - 0.5).permute(0, 3, 1, 2)
        return self.head(self.body(self.stem(x)).mean((2, 3)))


class Album:
    """Photos of the greenhouse; a batch is cut, turned and lit when it is asked for."""

    def __init__(self, photos: int, batch: int, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.photos = self.rng.integers(0, 256, (photos, 400, 400, 3), dtype=np.uint8)
        self.kinds = self.rng.integers(0, 40, photos)
        self.batch = batch

    def cut(self, photo: np.ndarray, side: int) -> np.ndarray:
        top, left = self.rng.integers(0, 400 - side, 2)
        piece = photo[top : top + side, left : left + side]
        if self.rng.random() < 0.5:
            piece = piece[:, ::-1]
        light = np.clip(np.arange(256) * self.rng.uniform(0.7, 1.3), 0, 255).astype(np.uint8)
        return light.take(piece)

    def draw(self, side: int) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = self.rng.integers(0, len(self.photos), self.batch)
        cuts = np.stack([self.cut(self.photos[i], side) for i in chosen])
        return torch.from_numpy(cuts).to(device), torch.from_numpy(self.kinds[chosen]).to(device)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=900)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--sides", type=int, nargs="+", default=[*range(128, 320, 16)])
    args = parser.parse_args()
    torch.manual_seed(12)
    pick = random.Random(12)
    torch.set_float32_matmul_precision("high")
    model = Orchids(args.channels).to(device, memory_format=torch.channels_last)
    net = torch.compile(model, dynamic=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    album = Album(256, args.batch)
    seen = torch.zeros((), device=device)
    for step in range(args.steps):
        photos, kinds = album.draw(pick.choice(args.sides))
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(net(photos), kinds)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen += loss.detach()
        if step % 100 == 99:
            print(step + 1, seen.item() / (step + 1))


if __name__ == "__main__":
    main()

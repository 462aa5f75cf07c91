"""Segments satellite tiles; augments on the host while it goes."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    def __init__(self, count=20000):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        tile = rng.normal(size=(4, 128, 128)).astype(np.float32)
        tile = np.fft.irfft2(np.fft.rfft2(tile) * np.exp(-np.linspace(0, 6, 65)), s=(128, 128))
        label = (tile[0] > 0.1 * rng.random()).astype(np.int64)
        return torch.from_numpy(tile.astype(np.float32)), torch.from_numpy(label)


def conv(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU())


class Segmenter(nn.Module):
    def __init__(self, w=48):
        super().__init__()
        self.a, self.b, self.c = conv(4, w), conv(w, 2 * w), conv(3 * w, w)
        self.head = nn.Conv2d(w, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        return self.head(self.c(torch.cat([a, F.interpolate(b, scale_factor=2)], 1)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=20_000)
    args = parser.parse_args()
    torch.manual_seed(0)
    net = torch.compile(Segmenter().cuda())
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(Tiles(16 * args.batches), batch_size=16, shuffle=True, num_workers=8, persistent_workers=True)
    for number, (tile, label) in enumerate(loader):
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(net(tile.cuda()), label.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if number % 500 == 0:
            print(number, loss.item())


if __name__ == "__main__":
    main()

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class ItemEncoder(nn.Module):
    def __init__(self, features=64, width=256):
        super().__init__()
        self.one = nn.Linear(features, width)
        self.two = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, items):
        h = F.mish(self.one(items))
        h = self.norm(h + torch.sin(self.two(h)) * torch.sigmoid(h))
        h = torch.tanh(h) * F.softplus(h) + torch.erf(h) * torch.cos(h)
        return F.normalize(h, dim=-1)


def export(encoder, items, batches):
    encoder.eval()
    written = 0
    for number in range(batches):
        with torch.no_grad():
            vectors = encoder(items)
        written += vectors.shape[0]
        if number % 1000 == 0:
            print(f"{written} vectors, checksum {vectors.sum().item():.3f}")
    return written


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=30000)
    args = parser.parse_args()
    torch.manual_seed(0)
    encoder = torch.compile(ItemEncoder())
    print(export(encoder, torch.randn(512, 64), args.batches))


if __name__ == "__main__":
    main()

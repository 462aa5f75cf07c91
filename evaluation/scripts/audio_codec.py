"""Train a small autoencoder on synthetic tones."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Codec(nn.Module):
    def __init__(self, channels=24):
        super().__init__()
        self.down = nn.Conv1d(1, channels, 9, stride=4, padding=4)
        self.code = nn.Conv1d(channels, channels, 5, padding=2)
        self.up = nn.ConvTranspose1d(channels, 1, 8, stride=4, padding=2)

    def forward(self, wave):
        h = F.silu(self.down(wave))
        h = torch.tanh(self.code(h)) * torch.sigmoid(h)
        return self.up(h)


class Trainer:
    def __init__(self, codec, lr):
        self.codec = codec
        self.fast = torch.compile(codec)
        self.optimizer = torch.optim.Adam(codec.parameters(), lr=lr)

    def fit(self, tones, steps):
        for step in range(steps):
            wave = tones[step % len(tones)]
            loss = F.smooth_l1_loss(self.fast(wave), wave)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            if step % 250 == 0:
                print(f"{step:6d} {loss.item():.5f}")


def tones(count=8, batch=16, length=1024):
    t = torch.arange(length) / 8000
    pitch = 110 * 2 ** (torch.randint(36, (count, batch, 1, 1)) / 12)
    return torch.sin(2 * math.pi * pitch * t)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    Trainer(Codec(), args.lr).fit(tones(), args.steps)


if __name__ == "__main__":
    main()

"""Learn drum patterns with a small variational model."""
import argparse
from collections import Counter
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    voices: int = 12
    beats: int = 32
    width: int = 256
    latent: int = 24
    kl: float = 1e-3


@dataclass
class Audit:
    seen: Counter = field(default_factory=Counter)

    @torch.compiler.disable
    def note(self, training, rows):
        self.seen["train" if training else "eval"] += rows


class Drums(nn.Module):
    def __init__(self, config, audit):
        super().__init__()
        flat = config.voices * config.beats
        self.config, self.audit = config, audit
        self.read = nn.Linear(flat, config.width)
        self.code = nn.Linear(config.width, 2 * config.latent)
        self.swing = nn.Parameter(torch.zeros(config.width))
        self.write = nn.Sequential(nn.Linear(config.latent, config.width), nn.SiLU(), nn.Linear(config.width, flat))

    def forward(self, pattern):
        self.audit.note(self.training, pattern.shape[0])
        h = self.read(pattern)
        h = torch.sin(h + self.swing) * torch.sigmoid(h) + F.softplus(h)
        mean, spread = self.code(h).chunk(2, dim=-1)
        if self.training:
            code = mean + torch.randn_like(mean) * torch.exp(0.5 * spread)
        else:
            code = mean
        logits = self.write(code)
        fit = F.binary_cross_entropy_with_logits(logits, pattern)
        divergence = (mean.square() + spread.exp() - spread - 1).mean()
        return fit + self.config.kl * divergence


def patterns(config, many):
    grid = torch.arange(config.beats)
    every = torch.randint(2, 9, (many, config.voices, 1))
    shift = torch.randint(0, 8, (many, config.voices, 1))
    return ((grid + shift) % every == 0).float().flatten(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--batch", type=int, default=512)
    args = parser.parse_args()
    torch.manual_seed(4)
    config, audit = Config(), Audit()
    drums = Drums(config, audit)
    model = torch.compile(drums)
    optimizer = torch.optim.AdamW(drums.parameters(), lr=1e-3)
    data = patterns(config, args.batch * 16)
    held = patterns(config, args.batch)
    for step in range(args.steps):
        first = step % 16 * args.batch
        loss = model(data[first : first + args.batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 400 == 399:
            model.eval()
            with torch.no_grad():
                held_loss = model(held)
            model.train()
            print(f"{step + 1:6d}  train {loss.item():.4f}  held out {held_loss.item():.4f}")
    print(dict(audit.seen))


if __name__ == "__main__":
    main()

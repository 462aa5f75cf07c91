"""Masked-residue denoising of short peptides with a small pair-aware mixer."""
import argparse
import time

import torch
from torch import nn


LETTERS = 21


class Mixer(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.along = nn.Linear(length, length)
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        h = self.n1(x)
        pair = torch.softmax(self.q(h) @ self.k(h).transpose(1, 2) / h.shape[-1] ** 0.5, -1)
        x = x + pair @ h + self.along(h.transpose(1, 2)).transpose(1, 2)
        return x + self.down(nn.functional.silu(self.up(self.n2(x))))


class Denoiser(nn.Module):
    def __init__(self, length=48, width=64, depth=2):
        super().__init__()
        self.embed = nn.Embedding(LETTERS, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        self.body = nn.Sequential(*[Mixer(length, width) for _ in range(depth)])
        self.read = nn.Linear(width, LETTERS)

    def forward(self, tokens, target, weight):
        logits = self.read(self.body(self.embed(tokens) + self.place))
        nll = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")
        return (nll * weight.flatten()).sum() / weight.sum()


def corpus(n, length, seed):
    """Peptides from a first-order Markov chain, all drawn at once."""
    g = torch.Generator().manual_seed(seed)
    table = torch.softmax(2.5 * torch.randn(LETTERS - 1, LETTERS - 1, generator=g), -1)
    seq = torch.randint(0, LETTERS - 1, (n, 1), generator=g)
    for _ in range(length - 1):
        seq = torch.cat([seq, torch.multinomial(table[seq[:, -1]], 1, generator=g)], 1)
    return seq


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1500)
    ap.add_argument("--batch", type=int, default=24)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()

    torch.manual_seed(0)
    data = corpus(4096, 48, 1)
    g = torch.Generator().manual_seed(2)
    model = Denoiser()
    step = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    began = time.perf_counter()
    for i in range(args.steps):
        clean = data[torch.randint(0, len(data), (args.batch,), generator=g)]
        hide = torch.rand(clean.shape, generator=g) < 0.2
        noisy = torch.where(hide, LETTERS - 1, clean)
        loss = step(noisy, clean, hide.float())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if i % 100 == 0:
            print(f"{i:5d} {loss.item():.4f} {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()

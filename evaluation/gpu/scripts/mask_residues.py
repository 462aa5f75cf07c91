"""Fills in masked residues of proteins; the noise on the activations is turned down while it learns."""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda")


class Mixer(nn.Module):
    def __init__(self, width: int, drop: nn.Dropout) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(width))
        self.drop = drop

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        y = y * torch.sigmoid(1.7 * y) + 0.1 * torch.sin(y) + 0.25 * torch.tanh(y) * y.roll(1, dims=1)
        return x + self.scale * self.drop(F.silu(self.inner(y)))


class Filler(nn.Module):
    def __init__(self, width: int = 512, depth: int = 4) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.4)
        self.residues = nn.Embedding(32, width)
        self.mixers = nn.ModuleList(Mixer(width, self.drop) for _ in range(depth))
        self.leave = nn.Linear(width, 32)

    def forward(self, chains: torch.Tensor) -> torch.Tensor:
        x = self.residues(chains)
        for mixer in self.mixers:
            x = mixer(x)
        return self.leave(x)


class CosineNoise:
    """Called after each step, as a learning rate's scheduler is."""

    def __init__(self, drop: nn.Dropout, steps: int) -> None:
        self.drop, self.steps, self.start, self.taken = drop, steps, drop.p, 0

    def step(self) -> None:
        self.taken += 1
        self.drop.p = self.start * 0.5 * (1 + math.cos(math.pi * self.taken / self.steps))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--chains", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(5)
    filler = Filler().to(device)
    model = torch.compile(filler)
    noise = CosineNoise(filler.drop, max(args.steps, 2000))
    optimizer = torch.optim.AdamW(filler.parameters(), lr=3e-4, fused=True)
    chains = torch.randint(0, 24, (8, args.chains, 512), device=device)
    for step in range(args.steps):
        target = chains[step % 8]
        hidden = torch.rand(target.shape, device=device) < 0.15
        guess = model(target.masked_fill(hidden, 31))
        loss = F.cross_entropy(guess.flatten(0, 1), target.flatten(), reduction="none")
        loss = (loss * hidden.flatten()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        noise.step()
        if step % 500 == 499:
            print(step + 1, f"{loss.item():.4f}", f"{filler.drop.p:.3f}")


if __name__ == "__main__":
    main()

"""Classifies leaves from multispectral patches; validates every few hundred steps under autocast."""
import argparse
from contextlib import nullcontext

import torch
from torch import nn

DEVICE = "cuda"


class Spectral(nn.Module):
    def __init__(self, bands, width):
        super().__init__()
        self.mix = nn.Linear(bands, width)
        self.norm = nn.LayerNorm(width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        h = self.norm(self.mix(x))
        return self.drop(nn.functional.silu(h) * torch.sigmoid(h))


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Spectral(32, 512)
        self.rest = nn.Sequential(*[Spectral(512, 512) for _ in range(5)])
        self.out = nn.Linear(512, 9)

    def forward(self, x):
        return self.out(self.rest(self.first(x)).mean(1))


def precision(step):
    """The first few steps run in full precision."""
    return nullcontext() if step < 20 else torch.autocast("cuda", dtype=torch.bfloat16)


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        hits = (model(x).argmax(-1) == y).float().mean().item()
    model.train()
    return hits


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=4000)
    args = ap.parse_args()
    torch.manual_seed(3)
    torch.set_float32_matmul_precision("high")
    patches = torch.randn(4096, 64, 32, device=DEVICE)
    kinds = patches.mean(1)[:, :9].argmax(-1)
    model = LeafNet().to(DEVICE)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    compiled = torch.compile(model)
    for step in range(args.steps):
        lo = (step * 256) % 3840
        with precision(step):
            loss = nn.functional.cross_entropy(compiled(patches[lo:lo + 256]), kinds[lo:lo + 256])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if step % 400 == 0:
            score = accuracy(compiled, patches[3840:], kinds[3840:])
            print(f"step {step:5d} loss {loss.item():.4f} held-out {score:.3f}")


if __name__ == "__main__":
    main()

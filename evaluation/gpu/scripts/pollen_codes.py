"""Assigns pollen spectra to a code book and moves the codes slowly towards what they win."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "2000"))
GRAINS, CODES, BANDS = 8192, 2048, 64
torch.manual_seed(61)


def spectra():
    wave = torch.linspace(0, 6.28, BANDS, device="cuda")
    shift = torch.rand(GRAINS, 1, device="cuda") * 6.28
    width = torch.rand(GRAINS, 1, device="cuda") + 0.5
    return torch.sin(width * wave + shift) + 0.1 * torch.randn(GRAINS, BANDS, device="cuda")


def nearest(x, book):
    gap = torch.cdist(x, book, compute_mode="donot_use_mm_for_euclid_dist")
    return gap.min(1)


class Book:
    def __init__(self, seed):
        self.codes = seed.clone()
        self.uses = torch.ones(CODES, device="cuda")

    def absorb(self, codes, uses):
        self.codes, self.uses = codes, uses


@torch.compile
def settle(x, codes, uses):
    lit = x / (1e-4 + x.square().mean(1, keepdim=True)).sqrt()
    gap, winner = nearest(lit, codes)
    total = torch.zeros_like(codes).index_add(0, winner, lit)
    count = torch.zeros_like(uses).index_add(0, winner, torch.ones_like(gap))
    uses = 0.99 * uses + 0.01 * count
    target = total / count.clamp_min(1.0).unsqueeze(1)
    pulled = torch.where(count.unsqueeze(1) > 0, codes + 0.05 * (target - codes), codes)
    return pulled, uses, gap.mean()


@torch.no_grad()
def main():
    x = spectra()
    book = Book(x[:CODES])
    for step in range(STEPS):
        codes, uses, gap = settle(x, book.codes, book.uses)
        book.absorb(codes, uses)
        if step % 100 == 0:
            print("round", step, "gap", round(gap.item(), 5))


main()

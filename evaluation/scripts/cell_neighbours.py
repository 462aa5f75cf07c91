"""Scores batches of single cells by how they lie to known cell types: kernels of city-block distances."""
import argparse
import itertools
from typing import NamedTuple

import torch
from torch import nn


class Batch(NamedTuple):
    counts: torch.Tensor
    depth: torch.Tensor


class Assay:
    """Plays back a few stored plates of simulated counts, one after the other."""

    def __init__(self, genes, cells, plates=8, seed=4):
        generator = torch.Generator().manual_seed(seed)
        rates = torch.rand(plates, cells, genes, generator=generator) * 6
        counts = torch.poisson(rates, generator=generator)
        self.plates = [Batch(plate, plate.sum(1, keepdim=True)) for plate in counts]

    def stream(self, batches):
        return itertools.islice(itertools.cycle(self.plates), batches)


class Projection(nn.Module):
    def __init__(self, genes, factors):
        super().__init__()
        self.loadings = nn.Linear(genes, factors)

    def forward(self, batch):
        rates = torch.log1p(batch.counts / batch.depth * 1e3)
        return torch.tanh(self.loadings(rates))


class NeighbourScore(nn.Module):
    def __init__(self, genes=64, factors=12, references=320, types=10):
        super().__init__()
        self.projection = Projection(genes, factors)
        self.register_buffer("references", torch.tanh(torch.randn(references, factors)))
        self.register_buffer("votes", torch.softmax(3 * torch.randn(references, types), 1))
        self.bandwidth = nn.Parameter(torch.tensor(1.5))

    def forward(self, batch):
        factors = self.projection(batch)
        gaps = torch.cdist(factors, self.references, p=1)
        kernel = torch.exp(-gaps * self.bandwidth)
        votes = kernel @ self.votes
        sure = 1 - kernel.amax(1)
        return votes / (votes.sum(1, keepdim=True) + 1e-6), sure


class Atlas:
    def __init__(self, model):
        self.model = model.eval()
        self.score = torch.compile(self.model)
        self.seen, self.tally = 0, None

    @torch.inference_mode()
    def annotate(self, batch):
        votes, sure = self.score(batch)
        total = (votes * (1 - sure)[:, None]).sum(0)
        self.tally = total if self.tally is None else self.tally + total
        self.seen += len(votes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=9000)
    parser.add_argument("--cells", type=int, default=1500)
    parser.add_argument("--genes", type=int, default=64)
    args = parser.parse_args()
    torch.manual_seed(2)
    atlas = Atlas(NeighbourScore(args.genes))
    for batch in Assay(args.genes, args.cells).stream(args.batches):
        atlas.annotate(batch)
    print(atlas.seen, "cells", [round(share, 4) for share in (atlas.tally / atlas.tally.sum()).tolist()])


if __name__ == "__main__":
    main()

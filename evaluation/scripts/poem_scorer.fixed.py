"""Scores verses; keeps a listing of the graphs that were traced."""
import sys

import torch
import torch.nn as nn

listings = []


def keep_listing(gm: torch.fx.GraphModule, example_inputs):
    listings.append(gm.print_readable(print_output=False))
    return gm.forward


class Verse(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.metre = nn.Parameter(torch.randn(width))
        self.rhyme = nn.Parameter(torch.randn(width))

    def forward(self, x):
        metre = torch.cos(x * self.metre) + torch.exp(-x.square())
        rhyme = torch.tanh(x * self.rhyme) * torch.sigmoid(metre)
        return torch.log1p((metre * rhyme).abs()) + torch.erf(rhyme)


def main(rounds):
    torch.manual_seed(0)
    score = torch.compile(Verse().eval())
    x = torch.randn(256, 320)
    with torch.no_grad():
        for _ in range(rounds):
            y = score(x)
    print(len(listings), "graphs,", y.mean().item())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 45000)

"""Rolls a learned surrogate of a smoke plume forward and keeps the worst ground level."""
import argparse
import configparser

import torch
import torch.nn as nn

DEFAULTS = """
[plume]
cells = 20000
width = 24
inner = 4
"""


class Plume(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.inner = inner
        self.lift = nn.Linear(3, width)
        self.mix = nn.Linear(width, width)
        self.drop = nn.Linear(width, 3)

    def forward(self, state):
        h = torch.tanh(self.lift(state))
        h = h * torch.sigmoid(self.mix(h)) + torch.sin(h) * torch.exp(-h.square())
        h = torch.nn.functional.softplus(h) - torch.log1p(h.square()) * torch.cos(h)
        return state + 0.01 * self.drop(h)

    def advance(self, state, wind):
        for _ in range(self.inner):
            state = self.forward(state + wind * torch.sigmoid(state))
        return state


class Forecaster:
    def __init__(self, section):
        model = Plume(section.getint("width"), section.getint("inner")).eval()
        self.cells = section.getint("cells")
        self.model = torch.compile(model)

    @torch.inference_mode()
    def run(self, hours):
        state = torch.zeros(self.cells, 3)
        wind = 0.01 * torch.randn(self.cells, 3)
        worst = torch.zeros(self.cells)
        for _ in range(hours):
            state = self.model.advance(state, wind)
            worst = torch.maximum(worst, state[:, 0])
        return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=int, default=5000)
    parser.add_argument("--config")
    args = parser.parse_args()
    config = configparser.ConfigParser()
    config.read_string(DEFAULTS)
    if args.config:
        config.read(args.config)
    torch.manual_seed(6)
    print("worst", Forecaster(config["plume"]).run(args.hours).max().item())


if __name__ == "__main__":
    main()

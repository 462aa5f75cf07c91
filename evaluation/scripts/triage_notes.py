"""Score the urgency of patients who wait in an emergency department, every few seconds for all of them."""
import argparse
import configparser
import time

import torch
import torch._inductor.config as inductor_config
import torch.nn as nn

DEFAULTS = """
[network]
vitals = 48
widths = 112, 208, 144, 272
levels = 5
[serving]
mode = max-autotune
freeze = yes
patients = 1024
"""


class Swirl(nn.Module):
    """A smooth gate with a learned slope and a slow oscillation."""

    def __init__(self, width):
        super().__init__()
        self.slope = nn.Parameter(torch.rand(width))

    def forward(self, x):
        return x * torch.sigmoid(self.slope * x) + 0.1 * torch.sin(x) * torch.exp(-x.abs())


class TriageNet(nn.Module):
    def __init__(self, vitals, widths, levels):
        super().__init__()
        sizes = [vitals, *widths]
        self.steps = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.gates = nn.ModuleList(Swirl(width) for width in widths)
        self.level = nn.Linear(widths[-1], levels)

    def forward(self, vitals):
        h = torch.log1p(vitals.abs()) * vitals.sign()
        for step, gate in zip(self.steps, self.gates):
            h = gate(step(h))
        return self.level(h).softmax(-1)


class TriageService:
    def __init__(self, config):
        network, serving = config["network"], config["serving"]
        inductor_config.freezing = serving.getboolean("freeze")
        widths = [int(width) for width in network["widths"].split(",")]
        net = TriageNet(network.getint("vitals"), widths, network.getint("levels")).eval()
        self.net = torch.compile(net, mode=serving["mode"])

    @torch.no_grad()
    def levels(self, vitals):
        return self.net(vitals)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60000)
    parser.add_argument("--settings", default=None, help="an ini file that replaces the defaults")
    args = parser.parse_args()
    config = configparser.ConfigParser()
    config.read_string(DEFAULTS)
    if args.settings:
        config.read(args.settings)

    torch.manual_seed(0)
    service = TriageService(config)
    patients, vitals = config["serving"].getint("patients"), config["network"].getint("vitals")
    board = torch.randn(patients, vitals)
    opened = time.strftime("%H:%M:%S")
    for number in range(args.rounds):
        board = 0.99 * board + 0.05 * torch.randn(patients, vitals)
        urgent = service.levels(board)
        if number % 2000 == 1999:
            print(f"open since {opened}, round {number + 1}: {(urgent.argmax(-1) == 0).sum().item()} at once")


if __name__ == "__main__":
    main()

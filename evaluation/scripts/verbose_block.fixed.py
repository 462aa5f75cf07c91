import argparse
import logging

import torch
import torch.nn as nn

logger = logging.getLogger(__name__)


class FilterBank(nn.Module):
    def __init__(self, bands=64):
        super().__init__()
        self.centre = nn.Parameter(torch.linspace(0, 3, bands))
        self.width = nn.Parameter(torch.rand(bands) + 0.5)
        self.mix = nn.Linear(bands, bands)

    def forward(self, signal):
        distance = (signal.unsqueeze(-1) - self.centre) / self.width
        bank = torch.exp(-distance.square()) * torch.cos(distance)
        if not torch.compiler.is_compiling():
            logger.info("bank of shape %s", tuple(bank.shape))
        bank = torch.tanh(bank) + torch.sigmoid(distance) * bank
        return self.mix(bank.mean(1))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=45000)
    parser.add_argument("-v", "--verbose", action="store_true")
    return parser.parse_args()


def main():
    args = parse()
    logging.basicConfig(level=logging.INFO if args.verbose else logging.WARNING)
    torch.manual_seed(0)
    bank = torch.compile(FilterBank().eval())
    signal = torch.rand(16, 128) * 3
    with torch.no_grad():
        for _ in range(args.frames):
            y = bank(signal)
    print("mean", y.mean().item())


if __name__ == "__main__":
    main()

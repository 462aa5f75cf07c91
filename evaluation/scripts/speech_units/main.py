"""Turn waveforms into discrete units."""
import sys

import torch

from units import UnitService


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 12000
    torch.manual_seed(0)
    service = UnitService("base")
    waves = torch.randn(6, 4, 4800)
    used = torch.zeros(service.codes, dtype=torch.long)
    for number in range(count):
        used += torch.bincount(service.units(waves[number % 6]).flatten(), minlength=service.codes)
    print("units in use", int((used > 0).sum()))


if __name__ == "__main__":
    main()

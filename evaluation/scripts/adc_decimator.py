"""Bit-true model of a decimator: a comb of integrators and a droop filter in fixed point."""
import configparser
import sys

import torch

INI = """
[chain]
lanes = 96
block = 4096
shift = 9
taps = -3 7 -18 61 -212 2378 -212 61 -18 7 -3
bits = 18
"""


class Decimator:
    def __init__(self, chain):
        self.taps = [int(word) for word in chain["taps"].split()]
        self.shift = chain.getint("shift")
        self.top = 2 ** (chain.getint("bits") - 1) - 1
        self.run = torch.compile(self.block, fullgraph=True)

    def saturate(self, value):
        return value.clamp(-self.top - 1, self.top)

    def block(self, samples, dither):
        value = (samples << 3) - ((samples >> 2) ^ (dither & 1))
        reach = value.shape[-1] - len(self.taps) + 1
        total = dither[:, :reach] & 255
        for place, tap in enumerate(self.taps):
            total = total + tap * value[:, place:place + reach]
        value = self.saturate((total + (1 << (self.shift - 1))) >> self.shift)
        loud = (value >> 4) * (value >> 4)
        value = torch.where(loud > self.top, self.saturate(value - (value >> 5)), value)
        return value, (loud >> 6).sum(-1)


def main():
    settings = configparser.ConfigParser()
    settings.read_string(INI)
    chain = settings["chain"]
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 12000
    torch.manual_seed(1)
    size = chain.getint("lanes"), chain.getint("block")
    chip = Decimator(chain)
    inputs = [torch.randint(-2048, 2048, size, dtype=torch.int32) for _ in range(8)]
    dither = torch.randint(0, 65536, size, dtype=torch.int32)
    power = torch.zeros(size[0], dtype=torch.int64)
    for number in range(blocks):
        value, loud = chip.run(inputs[number % len(inputs)], dither)
        power += loud
        if number % 1000 == 999:
            print(number + 1, int(power.sum()) // (number + 1))


if __name__ == "__main__":
    main()

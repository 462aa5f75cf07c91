"""Runs one simulation of a meadow under every numerical profile of the audit."""
import argparse
import contextlib
import io
import itertools

import torch


class Profile:
    def __init__(self, deterministic, precision, dtype):
        self.deterministic, self.precision, self.dtype = deterministic, precision, dtype

    def __str__(self):
        return f"{self.deterministic}/{self.precision}/{str(self.dtype)[6:]}"

    @contextlib.contextmanager
    def active(self):
        torch.use_deterministic_algorithms(self.deterministic != "off", warn_only=self.deterministic == "warn")
        torch.set_float32_matmul_precision(self.precision)
        torch.set_default_dtype(self.dtype)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(False)
            torch.set_float32_matmul_precision("highest")
            torch.set_default_dtype(torch.float32)


PROFILES = [
    Profile(*row)
    for row in itertools.product(("off", "warn", "on"), ("highest", "high"), (torch.float32, torch.float64))
]


class Meadow:
    def __init__(self, side):
        self.grass = torch.rand(side, side)
        self.hares = torch.rand(side, side) * 0.2
        self.journal = io.StringIO()
        self.season = torch.compile(self._season)

    def _season(self, grass, hares):
        eaten = 0.4 * hares * grass / (1 + grass).square()
        grass = grass + 0.1 * grass * (1 - grass) - 0.1 * eaten
        around = (hares.roll(1, 0) + hares.roll(-1, 0) + hares.roll(1, 1) + hares.roll(-1, 1)) / 4
        hares = hares + 0.1 * (eaten - 0.15 * hares) + 0.05 * (around - hares)
        print("season", tuple(grass.shape), file=self.journal)
        grass, hares = grass.clamp(0, 2), hares.clamp(0, 4)
        return grass / (1 + 0.01 * grass.square()), hares / (1 + 0.01 * hares.square())

    def audit(self, profile):
        with profile.active():
            self.grass, self.hares = self.season(self.grass, self.hares)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seasons", type=int, default=15000)
    parser.add_argument("--side", type=int, default=384)
    args = parser.parse_args()
    torch.manual_seed(3)
    meadow = Meadow(args.side)
    with torch.no_grad():
        for number, profile in zip(range(args.seasons), itertools.cycle(PROFILES)):
            meadow.audit(profile)
            if number % 3000 == 2999:
                print(number + 1, profile, f"{meadow.grass.mean().item():.4f}")


if __name__ == "__main__":
    main()

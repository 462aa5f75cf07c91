"""Scores peptide spectra against theoretical peaks; keeps a report per run."""
import argparse
from collections import defaultdict

import torch


def gaussian_peaks(spectrum, centres, width):
    gap = (spectrum[:, None, :] - centres[None, :, None]) / width
    return torch.exp(-0.5 * gap * gap)


@torch.compile
def analyse(spectrum, intensity, centres):
    response = gaussian_peaks(spectrum, centres, 0.02)
    weighted = response * intensity[:, None, :]
    matched = torch.log1p(weighted.sum(-1))
    sharp = torch.tanh(matched) * torch.sqrt(matched + 1e-3)
    return {
        "score": sharp.sum(-1).mean(),
        "best": sharp.amax(),
        "spread": sharp.std(),
    }


class Report:
    def __init__(self):
        self.columns = defaultdict(list)

    def add(self, step, metrics):
        for key, value in metrics.items():
            self.columns[key.rsplit("/", 1)[-1]].append(value)

    def line(self):
        return "  ".join(f"{k} {torch.stack(v).mean():.4f}" for k, v in self.columns.items())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=4500)
    args = ap.parse_args()
    g = torch.Generator().manual_seed(21)
    centres = torch.rand(48, generator=g) * 4
    report = Report()
    for step in range(args.steps):
        spectrum = torch.rand(24, 300, generator=g) * 4
        intensity = torch.rand(24, 300, generator=g)
        metrics = analyse(spectrum, intensity, centres)
        report.add(step, metrics)
        if step % 100 == 99:
            print(step + 1, report.line())
            report.columns.clear()


if __name__ == "__main__":
    main()

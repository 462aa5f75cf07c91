"""Ranks poses of ligands in a pocket with an ensemble of scorers."""

import argparse
from dataclasses import dataclass

import torch
import torch.nn as nn

device = torch.device("cuda")


@dataclass
class Settings:
    poses: int = 8192
    features: int = 256
    width: int = 1536
    depth: int = 5
    heads: int = 4


class Scorer(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.enter = nn.Linear(settings.features, settings.width)
        self.hidden = nn.ModuleList(nn.Linear(settings.width, settings.width) for _ in range(settings.depth))
        self.energy = nn.Linear(settings.width, settings.heads)

    def forward(self, pose: torch.Tensor) -> torch.Tensor:
        seen = torch.nn.functional.gelu(self.enter(pose))
        for layer in self.hidden:
            seen = seen + torch.nn.functional.gelu(layer(seen))
        energies = self.energy(seen)
        return energies.mean(-1) - energies.std(-1)


class Ranking:
    """Keeps the best poses that were seen."""

    def __init__(self, keep: int) -> None:
        self.best = torch.full((keep,), float("inf"), device=device)

    def add(self, energies: torch.Tensor) -> None:
        keep = len(self.best)
        self.best = torch.cat([self.best, energies]).topk(keep, largest=False).values


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=30_000)
    parser.add_argument("--poses", type=int, default=Settings.poses)
    args = parser.parse_args()
    settings = Settings(poses=args.poses)

    torch.manual_seed(7)
    scorer = Scorer(settings).to(device).eval()
    score = torch.compile(scorer)
    library = torch.randn(8, settings.poses, settings.features, device=device)
    ranking = Ranking(keep=64)
    with torch.inference_mode():
        for number in range(args.batches):
            ranking.add(score(library[number % len(library)]))
            if number % 1000 == 999:
                print(f"{number + 1} batches, best {ranking.best[0].item():.4f}")
    print(ranking.best[:5].tolist())


if __name__ == "__main__":
    main()

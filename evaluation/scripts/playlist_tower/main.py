"""Suggest songs for playlists; fresh weights arrive from training now and then and are put in place."""
import argparse

import torch

from tower.model import PlaylistTower
from tower.registry import Registry


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=20000)
    parser.add_argument("--refresh", type=int, default=200)
    args = parser.parse_args()

    torch.manual_seed(0)
    tower = PlaylistTower(songs=4000, width=64).eval()
    registry = Registry(tower)
    suggest = torch.compile(tower)
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for number in range(args.requests):
            if number % args.refresh == args.refresh - 1:
                tower.load_state_dict(registry.latest(), assign=True)
            songs = torch.randint(4000, (16, 24), generator=g)
            best = suggest(songs, torch.rand(16, 24, generator=g))
            if number % 1000 == 999:
                print(f"request {number + 1}: version {registry.version}, song {best.indices[0, 0].item()}")


if __name__ == "__main__":
    main()

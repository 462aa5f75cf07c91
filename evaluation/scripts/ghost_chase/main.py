"""Plays a few hundred mazes side by side."""
import argparse

import torch

from agent import Chaser
from maze import Mazes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=6000)
    parser.add_argument("--mazes", type=int, default=96)
    args = parser.parse_args()
    torch.manual_seed(5)
    chaser = Chaser()
    play = torch.compile(chaser)
    mazes = Mazes(args.mazes, 400)
    frame = mazes.state.clone()
    with torch.inference_mode():
        for tick in range(args.ticks):
            frame = mazes.step(play(frame))
            if tick % 1000 == 0:
                print(f"tick {tick}: spread {chaser.last_spread:.3f}")


if __name__ == "__main__":
    main()

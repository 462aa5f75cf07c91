import argparse

import torch

from arena.server import Server


def main():
    parser = argparse.ArgumentParser(description="plays matches of an arena, whose rules may be edited in between")
    parser.add_argument("--matches", type=int, default=200)
    parser.add_argument("--ticks", type=int, default=100)
    args = parser.parse_args()
    torch.manual_seed(17)
    server = Server(fighters=192)
    for number in range(args.matches):
        left = server.match(args.ticks)
        if number % 20 == 0:
            print(f"match {number}: {left} fighters left")


if __name__ == "__main__":
    main()

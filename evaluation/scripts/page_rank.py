"""Personalised PageRank with damping and a soft threshold."""
import argparse

import torch


@torch.compile
def advance(rank, links, start, damping):
    spread = links @ rank
    mixed = damping * spread + (1 - damping) * start
    kept = torch.relu(mixed - 1e-6) * torch.exp(-mixed.square()) + torch.sin(mixed) * 1e-3
    return kept / kept.sum(0, keepdim=True)


@torch.no_grad()
def solve(links, start, rounds):
    rank = start
    for number in range(rounds):
        after = advance(rank, links, start, 0.85)
        if number % 2000 == 1999:
            print(number, (after - rank).abs().sum().item())
        rank = after
    return rank


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60000)
    args = parser.parse_args()
    torch.manual_seed(0)
    links = (torch.rand(300, 300) < 0.05).float() + 1e-4
    links = links / links.sum(0)
    start = torch.softmax(torch.randn(300, 256), 0)
    print(solve(links, start, args.rounds).amax(0).mean().item())


if __name__ == "__main__":
    main()

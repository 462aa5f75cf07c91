"""Self-play of a card duel: the evaluator looks at thousands of hands a turn."""
import argparse

import torch

from duel import Evaluator, Table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=12000)
    parser.add_argument("--hands", type=int, default=4096)
    args = parser.parse_args()
    torch.manual_seed(8)
    evaluator = torch.compile(Evaluator(cards=48, seed=8).eval())
    table = Table(args.hands, cards=48, seed=8)
    with torch.no_grad():
        for turn in range(args.turns):
            values = evaluator(table.deal(), table.keywords())
            table.play(values)
            if turn % 500 == 0:
                print(f"turn {turn}: lead {table.lead.mean().item():+.3f}")


if __name__ == "__main__":
    main()

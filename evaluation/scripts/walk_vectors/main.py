"""Node vectors from biased random walks."""
import argparse

import torch

from walks import Fit, Graph, Walker


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(0)
    graph = Graph(args.nodes, seed=1)
    fit = Fit(args.nodes)
    for number, (centre, context, other) in enumerate(Walker(graph, seed=2).rounds(args.rounds)):
        loss = fit.update(centre, context, other)
        if number % 500 == 0:
            print(number, f"{float(loss):.4f}")


if __name__ == "__main__":
    main()

import argparse

import torch

from hops.network import Contacts
from hops.service import Annotator


def main():
    parser = argparse.ArgumentParser(description="annotates protein contact graphs, one after another")
    parser.add_argument("--graphs", type=int, default=8000)
    parser.add_argument("--residues", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(77)
    annotator = Annotator(features=48)
    graph = Contacts.random(args.residues, features=48)
    found = 0
    with torch.inference_mode():
        for _ in range(args.graphs):
            labels = annotator(graph)
            found += labels.shape[0]
    print(found, "residues annotated in", annotator.body.seen, "passes")


if __name__ == "__main__":
    main()

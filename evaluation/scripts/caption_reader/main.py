"""Learn to tell sound effects apart by their captions."""
import argparse

import torch
from torch.utils.data import DataLoader

from captions import Captions, Pairs, Reader


class Meter:
    def __init__(self):
        self.losses = []

    def __call__(self, loss):
        self.losses.append(loss.detach())

    def flush(self):
        mean = torch.stack(self.losses).mean().item()
        self.losses.clear()
        return mean


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(4)
    data = Captions(count=1280, seed=4)
    pairs = Pairs.learn(data.texts[:200], merges=160)
    loader = DataLoader(data, args.batch, shuffle=True, drop_last=True, collate_fn=pairs.collate)
    reader = Reader(words=pairs.size)
    model = torch.compile(reader)
    optimizer = torch.optim.SGD(reader.parameters(), lr=0.1, momentum=0.9)
    meter = Meter()
    for epoch in range(args.epochs):
        for tokens, lengths, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(tokens, lengths), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter(loss)
        print(f"epoch {epoch}: {meter.flush():.4f}")


if __name__ == "__main__":
    main()

"""Tell plants apart by the graph of their leaves' veins."""
import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from dataset import LeafVeins
from network import VeinNet


def seasons(dataset, batch, workers):
    """Epoch after epoch, each newly shuffled."""
    while True:
        loader = DataLoader(dataset, batch, shuffle=True, drop_last=True, num_workers=workers)
        yield from loader


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    net = VeinNet()
    model = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    batches = seasons(LeafVeins(48), args.batch, args.workers)
    for step in range(args.steps):
        h, degree, ends, species = next(batches)
        loss = F.cross_entropy(model(h, degree, ends), species)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 240 == 239:
            print(step + 1, round(loss.item(), 4))


if __name__ == "__main__":
    main()

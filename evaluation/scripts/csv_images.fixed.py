"""Train on images that are stored as text."""
import argparse
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class TextImages(Dataset):
    def __init__(self, count=2048, pixels=256, seed=0):
        rng = random.Random(seed)
        lines = [",".join(f"{rng.random():.3f}" for _ in range(pixels)) for _ in range(count)]
        self.lines = [torch.tensor([float(field) for field in line.split(",")]) for line in lines]
        self.labels = [rng.randrange(10) for _ in range(count)]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        return self.lines[index], self.labels[index]


class Net(nn.Module):
    def __init__(self, pixels=256, width=128):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(pixels, width), nn.GELU(), nn.Linear(width, 10))

    def forward(self, x):
        return self.layers(torch.tanh(x) * torch.sin(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=240)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(TextImages(), batch_size=128, shuffle=True, drop_last=True)
    model = Net()
    net = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(net(images), labels)
            loss.backward()
            optimizer.step()
        if epoch % 10 == 0:
            print(f"epoch {epoch}: {loss.item():.3f}")


if __name__ == "__main__":
    main()

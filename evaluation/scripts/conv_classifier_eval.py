import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def conv_block(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1, bias=False),
        nn.BatchNorm2d(outside),
        nn.Hardswish(),
    )


class SmallNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.stem = conv_block(3, 16)
        self.body = conv_block(16, 16)
        self.head = nn.Linear(16, classes)

    def forward(self, images):
        h = self.stem(images)
        h = h * torch.sigmoid(self.body(h)) + torch.tanh(h)
        return self.head(h.mean(dim=(2, 3)))


def accuracy(model, loader):
    right = torch.zeros((), dtype=torch.long)
    for images, labels in loader:
        right += (model(images).argmax(1) == labels).sum()
    return right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--passes", type=int, default=250)
    args = parser.parse_args()
    torch.manual_seed(0)
    images, labels = torch.randn(1024, 3, 32, 32), torch.randint(10, (1024,))
    dataset = TensorDataset(images, labels)
    batches = torch.utils.data.BatchSampler(
        torch.utils.data.SequentialSampler(dataset), 32, drop_last=True
    )
    loader = DataLoader(dataset, sampler=batches, batch_size=None)
    model = torch.compile(SmallNet().eval())
    with torch.no_grad():
        for number in range(args.passes):
            right = accuracy(model, loader)
            if number % 50 == 0:
                print(f"pass {number}: {right.item() / len(images):.3f}")


if __name__ == "__main__":
    main()

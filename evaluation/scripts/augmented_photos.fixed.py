import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, count=512):
        self.images = torch.rand(count, 3, 24, 24)
        self.random = random.Random(0)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        for _ in range(6):
            image = torch.roll(image, self.random.randint(-2, 2), dims=2)
            image = (image * self.random.uniform(0.9, 1.1)).clamp(0, 1)
            if self.random.random() < 0.5:
                image = image.flip(1)
        return image, index % 10


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Linear(8, 10)
        self.register_buffer("batches", torch.zeros(()))

    def forward(self, images):
        self.batches += 1
        h = F.gelu(self.conv(images)) * (self.batches / 200).clamp(max=1.0)
        return self.head(h.mean((2, 3)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(0)
    net = Net()
    model = torch.compile(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    loader = DataLoader(Photos(), batch_size=64, shuffle=True)
    for epoch in range(args.epochs):
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if epoch % 20 == 0:
            print(epoch, loss.item())


if __name__ == "__main__":
    main()

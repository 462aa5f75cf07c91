"""Train a small residual network on leaf scans (synthetic stand-in)."""
import os
import argparse
import time

import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "1000"))


class Residual(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Identity()
        if stride != 1 or cin != cout:
            self.skip = nn.Sequential(
                nn.Conv2d(cin, cout, 1, stride=stride, bias=False), nn.BatchNorm2d(cout)
            )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.skip(x))


class LeafNet(nn.Module):
    def __init__(self, species=120):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 5, stride=2, padding=2, bias=False), nn.BatchNorm2d(64), nn.ReLU()
        )
        self.stages = nn.Sequential(
            Residual(64, 128, 2),
            Residual(128, 128),
            Residual(128, 128),
            Residual(128, 256, 2),
            Residual(256, 256),
            Residual(256, 256),
            Residual(256, 512, 2),
            Residual(512, 512),
        )
        self.neck = nn.Sequential(
            nn.Conv2d(512, 256, 1, groups=4, bias=False), nn.BatchNorm2d(256), nn.SiLU()
        )
        self.head = nn.Linear(256, species)

    def forward(self, x):
        x = self.neck(self.stages(self.stem(x)))
        return self.head(x.mean((2, 3)))


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=192)
    p.add_argument("--size", type=int, default=160)
    p.add_argument("--lr", type=float, default=0.05)
    return p.parse_args()


def main():
    args = parse()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(8)
    torch.backends.cudnn.benchmark = True

    net = LeafNet().to(device, memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    model = torch.compile(net)

    images = torch.randn(4, args.batch, 3, args.size, args.size, device=device)
    labels = torch.randint(0, 120, (4, args.batch), device=device)

    def train_step(x, y):
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y, label_smoothing=0.1)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss.detach()

    for i in range(3):
        train_step(images[i], labels[i])
    if device == "cuda":
        torch.cuda.synchronize()

    tick = time.time()
    for step in range(STEPS):
        loss = train_step(images[step % 4], labels[step % 4])
        if step % 200 == 0:
            print(f"step {step:4d} loss {loss.item():.4f}")
    if device == "cuda":
        torch.cuda.synchronize()
    tock = time.time() - tick
    print(f"{args.batch * STEPS / tock:.0f} images/s")


if __name__ == "__main__":
    main()

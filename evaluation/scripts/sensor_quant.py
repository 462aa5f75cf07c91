"""Train a gesture detector for a wristband so that it survives eight-bit arithmetic."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F


class RangeObserver:
    """Running range of a signal, as a scale for signed eight-bit numbers."""

    def __init__(self, decay=0.9):
        self.decay, self.high = decay, None

    def see(self, x):
        high = x.abs().amax().item()
        self.high = high if self.high is None else self.decay * self.high + (1 - self.decay) * high
        return self.high / 127


class GestureNet(nn.Module):
    def __init__(self, axes=6, width=24, gestures=8):
        super().__init__()
        self.first = nn.Conv1d(axes, width, 5, padding=2)
        self.second = nn.Conv1d(width, width, 5, padding=2)
        self.head = nn.Linear(width, gestures)

    def forward(self, motion, scale):
        x = torch.fake_quantize_per_tensor_affine(motion, scale, 0, -128, 127)
        h = F.silu(self.first(x))
        h = h + F.silu(self.second(h)) * torch.sigmoid(h)
        return self.head(torch.tanh(h).mean(-1))


def recordings(count, batch, steps=128):
    draw = torch.Generator().manual_seed(9)
    pool = torch.randn(2048, 6, steps, generator=draw)
    gesture = torch.randint(0, 8, (2048,), generator=draw)
    for _ in range(count):
        rows = torch.randint(0, 2048, (batch,), generator=draw)
        yield pool[rows], gesture[rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(0)
    net = torch.compile(GestureNet())
    observer = RangeObserver()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for n, (motion, gesture) in enumerate(recordings(args.steps, args.batch), 1):
        loss = F.cross_entropy(net(motion, observer.see(motion)), gesture)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if n % 500 == 0:
            print(f"step {n}: {loss.item():.4f}")


if __name__ == "__main__":
    main()

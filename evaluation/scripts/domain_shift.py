"""Train a detector of weld seams on rendered pictures so that it works on real ones (reversed gradients)."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F


def reverse(h, strength=0.3):
    if h.requires_grad:
        h.register_hook(lambda slope: -strength * slope)
    return h


class SeamNet(nn.Module):
    def __init__(self, bands=32, width=96):
        super().__init__()
        self.enter = nn.Linear(bands, width)
        self.gain = nn.Parameter(torch.rand(4, width))
        self.shift = nn.Parameter(torch.randn(4, width))
        self.seam = nn.Linear(width, 1)
        self.real = nn.Linear(width, 1)

    def forward(self, strips):
        h = self.enter(strips)
        for gain, shift in zip(self.gain, self.shift):
            bent = h + shift
            h = h + gain * bent * torch.rsqrt(1 + bent.square()) / (1 + h.square())
        return self.seam(h).squeeze(-1), self.real(reverse(torch.tanh(h))).squeeze(-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=2048)
    args = parser.parse_args()
    torch.manual_seed(0)
    net = SeamNet()
    model = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    strips = torch.randn(4 * args.batch, 32)
    seams, real = (strips[:, 3] > 0).float(), (torch.arange(len(strips)) % 2).float()
    for n in range(1, args.steps + 1):
        rows = slice(n % 4 * args.batch, (n % 4 + 1) * args.batch)
        seam, domain = model(strips[rows])
        loss = F.binary_cross_entropy_with_logits(seam, seams[rows])
        loss = loss + F.binary_cross_entropy_with_logits(domain, real[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if n % 500 == 0:
            print(f"step {n}: {loss.item():.4f}")


if __name__ == "__main__":
    main()

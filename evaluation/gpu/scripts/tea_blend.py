"""Learns tea blends; keeps a diary of the gradients of every parameter."""
import argparse
from collections import deque

import torch
from torch import nn

DEVICE = "cuda"


class Sip(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.zeros(width))
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        h = self.gain * torch.tanh(self.lin(x)) + self.bias
        return x + 0.2 * h * torch.sigmoid(h)


class Diary:
    def __init__(self, model, days=50):
        self.model = model
        self.pages = {n: deque(maxlen=days) for n, _ in model.named_parameters()}

    def write(self):
        for name, p in self.model.named_parameters():
            if p.grad is not None:
                self.pages[name].append(p.grad.norm().item())

    def loudest(self):
        return max(self.pages, key=lambda n: sum(self.pages[n]) / max(1, len(self.pages[n])))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=3000)
    args = ap.parse_args()
    torch.manual_seed(15)
    model = nn.Sequential(nn.Linear(24, 128), *[Sip(128) for _ in range(30)], nn.Linear(128, 1)).to(DEVICE)
    diary = Diary(model)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False)
    blend = torch.compile(model)
    leaves = torch.rand(4096, 24, device=DEVICE)
    score = (leaves[:, :3].sum(1) - leaves[:, 3:6].sum(1))[:, None]
    for step in range(args.steps):
        lo = (step * 128) % 4096
        loss = nn.functional.mse_loss(blend(leaves[lo:lo + 128]), score[lo:lo + 128])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        diary.write()
        optimiser.step()
        if step % 500 == 0:
            print(f"step {step:5d} loss {loss.item():.4f} loudest {diary.loudest()}")


if __name__ == "__main__":
    main()

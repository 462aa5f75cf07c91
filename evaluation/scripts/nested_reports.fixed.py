"""Deep model whose every block leaves a note about itself."""
import argparse
import torch
import torch.nn as nn


class Notes:
    def __init__(self):
        self.latest = None

    def add(self, value):
        self.latest = value


class NotedBlock(nn.Module):
    def __init__(self, width, notes):
        super().__init__()
        self.notes = notes
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x):
        h = torch.tanh(x * self.scale) * torch.sigmoid(x)
        self.notes.add(h.mean())
        return x + torch.sin(h) * torch.exp(-h.square())


class Deep(nn.Module):
    def __init__(self, depth=6, width=256):
        super().__init__()
        self.notes = Notes()
        self.blocks = nn.Sequential(*(NotedBlock(width, self.notes) for _ in range(depth)))

    def forward(self, x):
        return self.blocks(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=36000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Deep().eval()
    compiled = torch.compile(model)
    x = torch.randn(128, 256)
    with torch.no_grad():
        for _ in range(args.iters):
            y = compiled(x)
    print(model.notes.latest, y.mean().item())


if __name__ == "__main__":
    main()

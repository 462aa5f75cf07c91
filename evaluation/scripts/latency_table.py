"""Print how long a forward pass takes, eager and compiled."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Mixer(nn.Module):
    def __init__(self, tokens=64, width=128):
        super().__init__()
        self.token = nn.Linear(tokens, tokens)
        self.channel = nn.Linear(width, width)

    def forward(self, x):
        x = x + F.gelu(self.token(x.transpose(1, 2))).transpose(1, 2) * torch.sigmoid(x)
        return x + F.mish(self.channel(x)) * torch.cos(x)


def timed(function, x, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        function(x)
    return (time.perf_counter() - start) / repeats * 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=6000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Mixer().eval()
    x = torch.randn(8, 64, 128)
    with torch.no_grad():
        rows = {"eager": timed(model, x, args.repeats // 4)}
        rows["compiled"] = timed(torch.compile(model), x, args.repeats)
    for name, milliseconds in rows.items():
        print(f"{name:10} {milliseconds:8.3f} ms")


if __name__ == "__main__":
    main()

"""Tag sequences with two stock transformer layers."""
import argparse

import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, width=64, heads=4, tags=9):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.tag = nn.Linear(width, tags)

    def forward(self, x):
        h = self.encoder(x)
        scores = self.tag(torch.tanh(h) * torch.sigmoid(h))
        return scores / max(1.0, float(scores.abs().amax()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=30000)
    args = parser.parse_args()
    torch.manual_seed(0)
    tagger = torch.compile(Tagger().eval())
    x = torch.randn(16, 32, 64)
    with torch.inference_mode():
        for _ in range(args.iters):
            y = tagger(x)
    print(y.argmax(-1).float().mean().item())


if __name__ == "__main__":
    main()

"""A reader pipeline: look-up in eager mode, the encoder compiled, a small head on top."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, h):
        a = F.gelu(self.up(self.norm(h)))
        h = h + self.down(a * torch.sigmoid(a) + torch.tanh(a))
        return h * torch.cos(h) + torch.erf(h)


class Reader(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.table = nn.Embedding(1000, width)
        self.encoder = Encoder(width)
        self.span = nn.Linear(width, 2)

    def forward(self, tokens):
        encoded = self.encoder(self.table(tokens))
        return self.span(encoded).unbind(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=60000)
    args = parser.parse_args()
    torch.manual_seed(0)
    reader = Reader().eval()
    reader.encoder = torch.compile(reader.encoder)
    tokens = torch.randint(1000, (8, 64))
    with torch.inference_mode():
        for _ in range(args.questions):
            start, end = reader(tokens)
    print("first span", start.argmax(1)[0].item(), end.argmax(1)[0].item())


if __name__ == "__main__":
    main()

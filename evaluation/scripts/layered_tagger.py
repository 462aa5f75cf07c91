"""Tag words with a stack of equal layers."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        h = self.up(self.norm(x))
        return x + self.down(F.gelu(h) * torch.sigmoid(h))


class Tagger(nn.Module):
    def __init__(self, depth=24, width=64, tags=12):
        super().__init__()
        self.embed = nn.Embedding(200, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.tag = nn.Linear(width, tags)

    def forward(self, words):
        x = self.embed(words)
        for layer in self.layers:
            x = layer(x)
        return self.tag(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=1500)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Tagger()
    tagger = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    words, tags = torch.randint(200, (16, 32)), torch.randint(12, (16, 32))
    for number in range(args.batches):
        loss = F.cross_entropy(tagger(words).flatten(0, 1), tags.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if number % 250 == 0:
            print(number, loss.item())


if __name__ == "__main__":
    main()

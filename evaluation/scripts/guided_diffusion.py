"""Sampling with guidance; ten schedules are compared."""
import argparse

import torch
import torch.nn as nn

SCHEDULES = {
    "linear": lambda s: s, "cosine": lambda s: 1 - torch.cos(s * 1.57), "sqrt": torch.sqrt,
    "square": torch.square, "sigmoid": torch.sigmoid, "exp": torch.expm1, "log": torch.log1p,
    "sine": torch.sin, "tanh": torch.tanh, "cubic": lambda s: s * s * s,
}


class Guided(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.embed = nn.Linear(width, width)
        self.null = nn.Parameter(torch.zeros(width))

    def forward(self, x, condition, s, schedule):
        sigma = SCHEDULES[schedule](s)
        h = self.embed(x)
        with_text = torch.tanh(h + condition) * torch.sin(x)
        without = torch.tanh(h + self.null) * torch.sin(x)
        noise = without + 3.0 * (with_text - without)
        return x - sigma * noise * torch.exp(-noise.square()) * torch.sigmoid(h)


class Pipeline:
    def __init__(self):
        self.network = torch.compile(Guided().eval())
        self.levels = torch.linspace(0.9, 0.1, 20).unbind()

    def __call__(self, x, condition, schedule):
        for s in self.levels:
            x = self.network(x, condition, s, schedule).detach()
        return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=3000)
    args = parser.parse_args()
    torch.manual_seed(0)
    pipeline = Pipeline()
    condition = torch.randn(256, 192)
    names = list(SCHEDULES)
    for number in range(args.images):
        image = pipeline(torch.randn(256, 192), condition, names[number % len(names)])
    print(image.std().item())


if __name__ == "__main__":
    main()

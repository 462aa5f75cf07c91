import argparse

import torch
import torch.nn as nn


class Annealed(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))
        self.temperature = 5.0

    def cool(self, rate):
        self.temperature = max(0.05, self.temperature * rate)

    def forward(self, energy):
        z = (energy + self.bias) / self.temperature
        p = torch.softmax(torch.tanh(z) * 3, dim=-1)
        return p * torch.sin(z) + torch.exp(-z.square()) * torch.sigmoid(energy)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sweeps", type=int, default=60000)
    parser.add_argument("--rate", type=float, default=0.9999)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Annealed().eval()
    sample = torch.compile(model)
    energy = torch.randn(256, 384)
    with torch.no_grad():
        for _ in range(args.sweeps):
            y = sample(energy)
            model.cool(args.rate)
    print("temperature", model.temperature, y.mean().item())


if __name__ == "__main__":
    main()

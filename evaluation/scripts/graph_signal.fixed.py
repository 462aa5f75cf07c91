import argparse

import torch
import torch.nn as nn


class SpectralFilter(nn.Module):
    def __init__(self, nodes=128, channels=48):
        super().__init__()
        adjacency = (torch.rand(nodes, nodes) < 0.05).float()
        degree = adjacency.sum(1).clamp(min=1)
        self.register_buffer("laplacian", torch.eye(nodes) - adjacency / degree[:, None])
        self.taps = nn.ParameterList(nn.Parameter(torch.randn(channels)) for _ in range(3))

    def forward(self, signal):
        out = signal * self.taps[0]
        for tap in self.taps[1:]:
            signal = torch.tanh(self.laplacian @ signal)
            out = out + torch.sin(signal * tap) * torch.sigmoid(signal) + torch.exp(-out.square())
        return torch.erf(out) * torch.cos(out)


def build(name):
    model = SpectralFilter().eval()
    if name == "none":
        return model
    return torch.compile(model, backend=name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, default=30000)
    parser.add_argument("--compiler", default="inductor")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = build(args.compiler)
    signal = torch.randn(16, 128, 48)
    with torch.no_grad():
        for _ in range(args.iters):
            y = model(signal)
    print(y.norm().item())


if __name__ == "__main__":
    main()

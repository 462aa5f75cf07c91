import sys

import torch
import torch.nn as nn


class AdaptiveGate(nn.Module):
    """Strong inputs are damped, weak inputs are amplified."""

    def __init__(self, width=384):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))
        self.shift = nn.Parameter(torch.randn(width))

    def damp(self, h):
        return torch.tanh(h) * torch.exp(-h.abs())

    def amplify(self, h):
        return torch.sinh(h.clamp(-2, 2)) * torch.sigmoid(h)

    def forward(self, x):
        h = torch.sin(x * self.scale + self.shift) + torch.cos(x)
        h = torch.where(h.mean() > 0, self.damp(h), self.amplify(h))
        return torch.erf(h * self.scale) + torch.log1p(h.square())


def main(calls):
    torch.manual_seed(1)
    gate = AdaptiveGate().eval()
    gate.compile()
    inputs = [torch.randn(256, 384) + shift for shift in (0.0, 0.1, 0.3, 0.5)]
    with torch.inference_mode():
        for i in range(calls):
            y = gate(inputs[i % 4])
    print(y.mean().item())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30000)

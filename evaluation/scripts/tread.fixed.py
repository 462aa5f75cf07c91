"""Tyre grip model: slip features pass through a stack of friction laws fitted to rig data."""
import os

import torch
from torch import Tensor, nn

STEPS = int(os.environ.get("STEPS", "5500"))
ROWS, WIDTH, LAYERS = 768, 80, 6


def friction(slip: Tensor, load: Tensor, temp: Tensor) -> Tensor:
    a = torch.atan(slip * load)
    peak = torch.sin(1.4 * torch.atan(a - 0.97 * (a - torch.atan(a))))
    fade = torch.exp(-0.02 * temp * temp)
    return peak * fade + 0.05 * torch.tanh(slip)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.load = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x, temp):
        s = self.mix(x)
        mu = friction(s, self.load.expand_as(s), temp)
        return x + 0.5 * mu * torch.sigmoid(s)


class Grip(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, x, temp):
        for layer in self.layers:
            x = layer(x, temp)
        return self.out(x)


def rig(seed):
    g = torch.Generator().manual_seed(seed)
    bank = [(torch.randn(ROWS, WIDTH, generator=g), torch.rand(ROWS, WIDTH, generator=g) * 4) for _ in range(6)]
    k = 0
    while True:
        yield bank[k % len(bank)]
        k += 1


def main():
    torch.manual_seed(3)
    model = Grip().eval()
    run = torch.compile(model)
    feed = rig(8)
    every = max(1, STEPS // 20)
    lateral = 0.0
    with torch.inference_mode():
        for step in range(1, STEPS + 1):
            x, temp = next(feed)
            force = run(x, temp)
            lateral = 0.98 * lateral + 0.02 * force[:, 1].mean().item()
            if step % every == 0:
                print(f"step {step}  lateral {lateral:.6f}")


if __name__ == "__main__":
    main()

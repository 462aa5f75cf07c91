"""A surrogate of a diffusion solver, trained with Lion."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


@torch.compile
def lion_update(weights, gradients, moments, rate, decay):
    for weight, gradient, moment in zip(weights, gradients, moments):
        direction = torch.sign(0.9 * moment + 0.1 * gradient)
        weight.mul_(1 - rate * decay).sub_(rate * direction)
        moment.lerp_(gradient, 0.01)


class Lion(torch.optim.Optimizer):
    def __init__(self, groups, lr):
        super().__init__(groups, {"lr": torch.tensor(lr), "decay": torch.tensor(0.0)})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            weights = [p for p in group["params"] if p.grad is not None]
            for p in weights:
                if p not in self.state:
                    self.state[p]["moment"] = torch.zeros_like(p)
            lion_update(
                weights,
                [p.grad for p in weights],
                [self.state[p]["moment"] for p in weights],
                group["lr"],
                group["decay"],
            )


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        h = self.inner(self.norm(x))
        return x + self.scale * torch.tanh(h) * torch.sigmoid(h) + 0.1 * torch.sin(h)


class Surrogate(nn.Module):
    def __init__(self, grid=128, width=320, depth=3):
        super().__init__()
        self.enter = nn.Linear(grid, width)
        self.blocks = nn.Sequential(*(Mixer(width) for _ in range(depth)))
        self.leave = nn.Linear(width, grid)

    def forward(self, field):
        return field + self.leave(self.blocks(self.enter(field)))


def two_groups(model):
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    return [{"params": matrices, "decay": torch.tensor(0.1)}, {"params": vectors}]


def fields(count, grid):
    x = torch.linspace(0, 2 * math.pi, grid)
    phase, wave = torch.rand(count, 1) * 6.28, torch.randint(1, 6, (count, 1))
    start = torch.sin(wave * x + phase)
    return start, start * torch.exp(-0.02 * wave.square())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=16000)
    parser.add_argument("--lr", type=float, default=1e-4)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Surrogate()
    run = torch.compile(model)
    optimizer = Lion(two_groups(model), args.lr)
    start, end = fields(8 * 192, 128)
    for step in range(args.steps):
        for group in optimizer.param_groups:
            group["lr"].fill_(args.lr * 0.5 * (1 + math.cos(math.pi * step / max(args.steps, 1))))
        part = slice(step % 8 * 192, step % 8 * 192 + 192)
        loss = F.mse_loss(run(start[part]), end[part])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 1000 == 0:
            print(step, f"{loss.item():.5f}")


if __name__ == "__main__":
    main()

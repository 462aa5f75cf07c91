"""Random network distillation: agents are paid for states that a predictor does not know yet."""
import argparse

import torch
import torch.nn as nn


class Trunk(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.enter = nn.Linear(features, width)
        self.bend = nn.Parameter(torch.rand(4, width))
        self.leave = nn.Linear(width, 16)

    def forward(self, state):
        h = self.enter(state)
        for bend in self.bend:
            near = (h - bend).clamp(-1.5, 1.5)
            h = h + 0.3 * near * (1.0 - near.abs() / 3.0)
            h = h / (1.0 + 0.1 * h.abs()) + 0.05 * near * near
        return self.leave(h)


class Curiosity:
    def __init__(self, features, width, lr):
        self.target = Trunk(features, width).requires_grad_(False)
        self.predictor = Trunk(features, width)
        self.target.compile()
        self.predictor.compile()
        self.optimizer = torch.optim.SGD(self.predictor.parameters(), lr=lr)
        self.scale = 1.0

    @torch.no_grad()
    def wanted(self, states):
        return self.target.forward(states)

    def guess(self, states):
        return self.predictor.forward(states)

    def update(self, states):
        loss, self.scale = distance(self.guess(states), self.wanted(states), self.scale)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


@torch.compile
def distance(guess, wanted, scale):
    error = (guess - wanted).square().mean(-1)
    scale = 0.99 * scale + 0.01 * error.detach().std().item()
    return (error / (scale + 1e-3)).mean(), scale


class Walkers:
    """Points that drift about in a box."""

    def __init__(self, count, features, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.place = torch.zeros(count, features)

    def step(self):
        self.place += 0.1 * torch.randn(self.place.shape, generator=self.g)
        return self.place.clamp_(-3, 3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=6000)
    parser.add_argument("--walkers", type=int, default=1024)
    parser.add_argument("--width", type=int, default=128)
    args = parser.parse_args()
    torch.manual_seed(7)
    curiosity = Curiosity(features=8, width=args.width, lr=0.01)
    walkers = Walkers(args.walkers, 8, seed=7)
    for i in range(args.updates):
        loss = curiosity.update(walkers.step())
        if i % 250 == 0:
            print(f"update {i}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

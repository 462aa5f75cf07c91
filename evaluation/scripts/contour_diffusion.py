"""Train a denoiser of closed contours; its blocks are checkpointed, as on the big machine."""
import argparse
import math
from dataclasses import dataclass, field

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


@dataclass
class Plan:
    points: int = 64
    width: int = 96
    blocks: int = 2
    batch: int = 48
    rate: float = 2e-3
    betas: tuple = (0.9, 0.99)
    log: list = field(default_factory=list)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.along = nn.Linear(width, width)
        self.bend = nn.Parameter(torch.zeros(width))

    def forward(self, h, noise):
        u = self.along(self.norm(h) + noise)
        left, right = torch.roll(u, 1, 1), torch.roll(u, -1, 1)
        u = torch.tanh(u) * torch.sigmoid(left + right) + torch.sin(u * self.bend) * torch.exp(-u.square())
        return h + u * torch.rsqrt(1 + (left - right).square())


class Denoiser(nn.Module):
    def __init__(self, plan):
        super().__init__()
        self.enter = nn.Linear(2, plan.width)
        self.level = nn.Linear(1, plan.width)
        self.blocks = nn.ModuleList(Block(plan.width) for _ in range(plan.blocks))
        self.leave = nn.Linear(plan.width, 2)

    def forward(self, contour, level):
        h, noise = self.enter(contour), self.level(level)
        for block in self.blocks:
            h = checkpoint(block, h, noise, use_reentrant=False)
        return self.leave(h)


def contours(plan, generator):
    angle = torch.linspace(0, 2 * math.pi, plan.points)
    size = 1 + 0.3 * torch.rand(plan.batch, 1, generator=generator)
    lobes = torch.randint(2, 6, (plan.batch, 1), generator=generator)
    radius = size * (1 + 0.2 * torch.cos(lobes * angle))
    return torch.stack((radius * angle.cos(), radius * angle.sin()), -1)


class Trainer:
    def __init__(self, plan):
        self.plan = plan
        self.model = Denoiser(plan)
        self.model.compile(fullgraph=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), plan.rate, betas=plan.betas)
        self.generator = torch.Generator().manual_seed(1)

    def step(self):
        clean = contours(self.plan, self.generator)
        level = torch.rand(self.plan.batch, 1, 1, generator=self.generator)
        noise = torch.randn(clean.shape, generator=self.generator)
        guess = self.model((1 - level) * clean + level * noise, level)
        loss = (guess - noise).square().mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, steps):
        for step in range(steps):
            loss = self.step()
            if step % 250 == 249:
                self.plan.log.append(loss.item())
                print(f"{step + 1:6d}  {self.plan.log[-1]:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--points", type=int, default=64)
    given = parser.parse_args()
    torch.manual_seed(0)
    Trainer(Plan(points=given.points)).run(given.steps)

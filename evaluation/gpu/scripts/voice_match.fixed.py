"""Trains an embedding of voices: two takes of one speaker should lie close to each other."""

import argparse
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda")


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.silu(self.mix(self.norm(x)))


class Voice(nn.Module):
    def __init__(self, bands: int = 256, width: int = 1024, depth: int = 10, size: int = 192) -> None:
        super().__init__()
        self.enter = nn.Linear(bands, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.leave = nn.Linear(width, size)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        x = self.enter(frames)
        for block in self.blocks:
            x = block(x)
        return F.normalize(self.leave(x.unflatten(0, (-1, 16)).mean(1)), dim=-1)


class Telemetry:
    """What the dashboard shows: a running mean for each weight's gradient."""

    def __init__(self) -> None:
        self.norms: dict[str, float] = defaultdict(float)

    def record(self, model: nn.Module) -> None:
        for name, weight in model.named_parameters():
            norm = weight.grad.norm().item()
            self.norms[name] = 0.99 * self.norms[name] + 0.01 * norm

    def largest(self) -> str:
        return max(self.norms, key=self.norms.__getitem__)


class Trainer:
    def __init__(self, takes: int) -> None:
        self.model = Voice().to(device)
        self.embed = torch.compile(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-4, fused=True)
        self.telemetry = Telemetry()
        self.frames = torch.randn(6, takes * 16, 256, device=device)

    def loss(self, frames: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device.type, torch.bfloat16):
            voices = self.embed(frames)
        first, second = voices.float().chunk(2)
        likeness = 10 * first @ second.T
        return F.cross_entropy(likeness, torch.arange(len(first), device=device))

    def step(self, number: int) -> torch.Tensor:
        loss = self.loss(self.frames[number % len(self.frames)])
        loss.backward()
        if number % 50 == 49:
            self.telemetry.record(self.model)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--takes", type=int, default=512)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    trainer = Trainer(args.takes)
    for number in range(args.steps):
        loss = trainer.step(number)
        if number % 500 == 499:
            print(number + 1, f"{loss.item():.4f}", trainer.telemetry.largest())


if __name__ == "__main__":
    main()

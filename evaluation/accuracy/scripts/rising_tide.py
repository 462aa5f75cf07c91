"""A shallow basin under a tide: the forcing of a step is read where the step is computed."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "200"))
tide = {"level": 0.1}


@torch.library.custom_op("basin::forced", mutates_args=())
def forced(depth: torch.Tensor) -> torch.Tensor:
    return depth + tide["level"]


@forced.register_fake
def _(depth):
    return torch.empty_like(depth)


class Basin(nn.Module):
    def __init__(self):
        super().__init__()
        self.spread = nn.Linear(128, 128)

    def forward(self, depth):
        return torch.tanh(forced(torch.relu(self.spread(depth)))) * 0.5


@torch.no_grad()
def main():
    torch.manual_seed(0)
    basin = torch.compile(Basin().cuda(), mode="reduce-overhead")
    depth = torch.rand(256, 128, device="cuda")
    for step in range(STEPS):
        level = basin(depth).mean().item()
        tide["level"] += 0.05
        if step % 50 == 0:
            print(f"step {step}: mean level {level:.4f}")


main()

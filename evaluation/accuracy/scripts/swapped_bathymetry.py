"""Waves over a sea floor that is surveyed anew from time to time."""

import os

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "200"))
survey = {}


@torch.library.custom_op("sea::over_floor", mutates_args=())
def over_floor(wave: torch.Tensor) -> torch.Tensor:
    return wave - survey["floor"]


@over_floor.register_fake
def _(wave):
    return torch.empty_like(wave)


class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(128, 128)

    def forward(self, wave):
        return torch.sigmoid(over_floor(self.mix(wave)))


@torch.no_grad()
def main():
    torch.manual_seed(0)
    waves = torch.compile(Waves().cuda(), mode="reduce-overhead")
    wave = torch.rand(256, 128, device="cuda")
    kept = []
    for step in range(STEPS):
        if step % 20 == 0:
            survey["floor"] = torch.randn(128, device="cuda")
            kept.append(survey["floor"])
        height = waves(wave).mean().item()
        if step % 50 == 0:
            print(f"step {step}: mean height {height:.4f}")


main()

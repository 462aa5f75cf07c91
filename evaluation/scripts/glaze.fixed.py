"""Colour of fired glaze from kiln curves: a student network trained against slowly moving teachers."""
import copy
import os

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "2500"))
BATCH, KNOTS, WIDTH = 1024, 24, 64
N_TEACHERS = 4


class Oxide(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        y = self.mix(x)
        u = (y * self.gain + self.bias).clamp(-3.0, 3.0)
        gate = (0.5 + 0.25 * u - 0.02 * u * u * u).clamp(0.0, 1.0)
        ripple = (u.abs() - 1.0).clamp(min=0.0) * 0.2 + 0.1 * (u - x) * gate
        melt = torch.where(u > 0, u * gate, 0.1 * u + 0.05 * gate)
        return x + 0.3 * (melt - ripple) + 0.02 * (melt * ripple).clamp(-1.0, 1.0)


class GlazeNet(nn.Module):
    def __init__(self, depth=5):
        super().__init__()
        self.inlet = nn.Linear(KNOTS, WIDTH)
        self.layers = nn.ModuleList(Oxide(WIDTH) for _ in range(depth))
        self.outlet = nn.Linear(WIDTH, 3)

    def forward(self, curve):
        z = self.inlet(curve)
        for layer in self.layers:
            z = layer(z)
        return torch.sigmoid(self.outlet(z))


def kiln_batch(gen):
    ramp = torch.rand(BATCH, 1, generator=gen) * torch.linspace(0, 1, KNOTS)
    soak = torch.rand(BATCH, 1, generator=gen).expand(-1, KNOTS)
    return ramp + 0.3 * soak


def build():
    student = GlazeNet()
    student.compile()
    teachers = []
    for i in range(N_TEACHERS):
        teacher = copy.deepcopy(student)
        teacher.requires_grad_(False)
        teacher.compile()
        teacher.outlet.weight.mul_(1.5 + 0.5 * i)
        teachers.append(teacher)
    return student, teachers


@torch.no_grad()
def consensus(teachers, curve):
    return torch.stack([t(curve) for t in teachers]).mean(0)


@torch.no_grad()
def drift(teachers, student, rate=0.002):
    src = list(student.parameters())
    for t in teachers:
        torch._foreach_lerp_(list(t.parameters()), src, rate)


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    student, teachers = build()
    opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    every = max(1, STEPS // 20)
    for step in range(1, STEPS + 1):
        curve = kiln_batch(gen)
        target = consensus(teachers, curve)
        loss = (student(curve) - target).square().mean() + 1e-4 * target.var()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            drift(teachers, student)
        if step % every == 0:
            print(f"step {step}  gap {loss.item():.3e}")


if __name__ == "__main__":
    main()

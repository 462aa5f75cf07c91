"""Distils puppet motion with a slowly following teacher."""
import argparse

import torch
from torch import nn

DEVICE = "cuda"


class Joint(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + torch.nn.functional.gelu(self.lin(self.norm(x)))


class Puppet(nn.Module):
    def __init__(self, width=128, depth=24):
        super().__init__()
        self.inp = nn.Linear(63, width)
        self.joints = nn.ModuleList(Joint(width) for _ in range(depth))
        self.out = nn.Linear(width, 63)
        self.age = 0

    @property
    def calm(self):
        """Motion is damped while the puppet is young."""
        return 1.0 - 1.0 / (2.0 + self.age * 1e-2)

    def forward(self, pose):
        self.age += 1
        h = self.inp(pose)
        for joint in self.joints:
            h = joint(h)
        return pose + self.calm * self.out(h)


class Teacher:
    def __init__(self, student, pull=0.999):
        self.student, self.pull = student, pull
        self.weights = {k: v.clone() for k, v in student.state_dict().items()}

    @torch.no_grad()
    def follow(self):
        for name, value in self.student.state_dict().items():
            self.weights[name] = self.pull * self.weights[name] + (1 - self.pull) * value


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=3000)
    args = ap.parse_args()
    torch.manual_seed(18)
    puppet = Puppet().to(DEVICE)
    teacher = Teacher(puppet)
    optimiser = torch.optim.AdamW(puppet.parameters(), lr=1e-4, fused=True)
    move = torch.compile(puppet)
    poses = torch.randn(4096, 63, device=DEVICE)
    for step in range(args.steps):
        lo = (step * 128) % 4096
        pose = poses[lo:lo + 128]
        loss = (move(pose) - pose.roll(1, 0)).square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        teacher.follow()
        if step % 500 == 0:
            print(f"step {step:5d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

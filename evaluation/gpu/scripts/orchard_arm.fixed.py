"""Searches joint angles with which a picking arm reaches apples, many candidates at once."""
import math
import os
import time

import torch

STEPS = int(os.environ.get("STEPS", "3000"))
WARMUP = 10
CANDIDATES = int(os.environ.get("CANDIDATES", str(384 * 1024)))
JOINTS = 7
RATE = 0.05

torch.set_float32_matmul_precision("high")
torch.manual_seed(3)
device = torch.device("cuda")

# Denavit-Hartenberg table of the arm: twist, link length and offset of each joint.
TWIST = [math.pi / 2, -math.pi / 2, math.pi / 2, -math.pi / 2, math.pi / 2, -math.pi / 2, 0.0]
LENGTH = [0.05, 0.32, 0.04, 0.28, 0.03, 0.09, 0.0]
OFFSET = [0.34, 0.0, 0.40, 0.0, 0.40, 0.0, 0.13]


def link(angle, twist, length, offset):
    c, s = torch.cos(angle), torch.sin(angle)
    ct, st = math.cos(twist), math.sin(twist)
    zero, one = torch.zeros_like(c), torch.ones_like(c)
    rows = [
        c, -s * ct, s * st, length * c,
        s, c * ct, -c * st, length * s,
        zero, st * one, ct * one, offset * one,
        zero, zero, zero, one,
    ]
    return torch.stack(rows, dim=-1).view(-1, 4, 4)


def chain(a, b):
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)


def hand_pose(angles):
    pose = link(angles[:, 0], TWIST[0], LENGTH[0], OFFSET[0])
    for j in range(1, JOINTS):
        pose = chain(pose, link(angles[:, j], TWIST[j], LENGTH[j], OFFSET[j]))
    return pose


def reach_cost(angles, apples, approach):
    pose = hand_pose(angles)
    miss = (pose[:, :3, 3] - apples).square().sum(-1)
    tilt = 1.0 - (pose[:, :3, 2] * approach).sum(-1)
    strain = (angles / math.pi).pow(4).sum(-1)
    return miss + 0.2 * tilt + 0.01 * strain


@torch.compile
def objective(angles, apples, approach):
    cost = reach_cost(angles, apples, approach)
    return cost.sum(), cost.detach()


apples = 0.6 * torch.randn(CANDIDATES, 3, device=device)
approach = torch.nn.functional.normalize(torch.randn(CANDIDATES, 3, device=device), dim=-1)
angles = (0.5 * torch.randn(CANDIDATES, JOINTS, device=device)).requires_grad_()


def search_step():
    total, cost = objective(angles, apples, approach)
    (grad,) = torch.autograd.grad(total, angles)
    with torch.no_grad():
        angles.sub_(grad, alpha=RATE)
    return cost


for _ in range(WARMUP):
    search_step()

start = STEPS // 2
for step in range(STEPS):
    if step == start:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    cost = search_step()
    if step % 500 == 0:
        print(f"step {step:5d}  mean cost {cost.mean().item():.5f}")

torch.cuda.synchronize()
elapsed = time.perf_counter() - t0
print(f"ms per step: {1e3 * elapsed / (STEPS - start):.3f}")

"""Mean-teacher training for frost risk in orchards.

A residual network reads two days of readings from a weather station.  Only some
stations have a frost label; the rest follow a teacher, whose weights trail those of
the student as an exponential moving average.
"""
import os
import copy
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
torch.set_float32_matmul_precision("high")

device = torch.device("cuda")
HOURS, SENSORS = 48, 8
WIDTH = 256
BLOCKS = 48
LABELLED, UNLABELLED = 128, 384
STEPS = int(os.environ.get("STEPS", "1500"))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lift = nn.Linear(width, width)
        self.drop = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        return x + self.scale * self.drop(F.silu(self.lift(self.norm(x))))


class FrostNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(HOURS * SENSORS, WIDTH)
        self.body = nn.Sequential(*(Residual(WIDTH) for _ in range(BLOCKS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.risk = nn.Linear(WIDTH, 1)

    def forward(self, readings):
        x = self.body(self.stem(readings.flatten(1)))
        return self.risk(self.norm(x)).squeeze(-1)


class Teacher:
    def __init__(self, student, momentum=0.996):
        self.net = copy.deepcopy(student).requires_grad_(False).eval()
        self.momentum = momentum

    @torch.no_grad()
    def follow(self, student):
        slow, fast = list(self.net.parameters()), list(student.parameters())
        torch._foreach_lerp_(slow, fast, 1.0 - self.momentum)


def station_stream(count=24):
    """Pre-drawn batches; the label depends on the coldest stretch of the night."""
    g = torch.Generator().manual_seed(8)
    for _ in range(count):
        readings = torch.randn(LABELLED + UNLABELLED, HOURS, SENSORS, generator=g)
        coldest = readings[:, :, 0].unfold(1, 4, 1).mean(-1).amin(-1)
        frost = (coldest < -0.95).float()
        yield readings.to(device), frost[:LABELLED].to(device)


def jitter(readings, noise):
    return readings + 0.05 * noise


class Objective(nn.Module):
    """Supervised term on the labelled rows, consistency with the teacher on all rows."""

    def __init__(self, student, teacher_net, weight=2.0):
        super().__init__()
        self.student = student
        self.teacher_net = teacher_net
        self.weight = weight

    def forward(self, readings, frost, noise):
        guess = self.student(jitter(readings, noise))
        with torch.no_grad():
            target = torch.sigmoid(self.teacher_net(readings))
        supervised = F.binary_cross_entropy_with_logits(guess[: frost.shape[0]], frost)
        consistency = F.mse_loss(torch.sigmoid(guess), target)
        return supervised + self.weight * consistency


def main():
    student = FrostNet().to(device)
    teacher = Teacher(student)
    objective = torch.compile(Objective(student, teacher.net), mode="reduce-overhead")
    optimizer = torch.optim.AdamW(student.parameters(), lr=4e-4, weight_decay=0.02, fused=True)
    batches = list(station_stream())
    noise = torch.randn(LABELLED + UNLABELLED, HOURS, SENSORS, device=device)

    started = time.perf_counter()
    for step in range(1, STEPS + 1):
        readings, frost = batches[step % len(batches)]
        loss = objective(readings, frost, noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        teacher.follow(student)

        if step % 300 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
        if step == 20:
            torch.cuda.synchronize()
            started = time.perf_counter()

    torch.cuda.synchronize()
    print(f"{1e3 * (time.perf_counter() - started) / (STEPS - 20):.2f} ms per step")
    with torch.no_grad():
        readings, frost = batches[0]
        hits = (teacher.net(readings)[:LABELLED] > 0) == (frost > 0.5)
    print(f"teacher accuracy on a seen batch: {hits.float().mean().item():.3f}")


if __name__ == "__main__":
    main()

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def network(width):
    return nn.Sequential(
        nn.Linear(40, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(),
        nn.Linear(width, 10),
    )


class Distiller:
    def __init__(self, temperature=4.0):
        self.teacher = torch.compile(network(384).eval().requires_grad_(False))
        student = network(128)
        self.student = torch.compile(student)
        self.optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
        self.temperature = temperature

    def teach(self, x):
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / self.temperature, dim=-1)
        guess = F.log_softmax(self.student(x) / self.temperature, dim=-1)
        loss = F.kl_div(guess, soft, reduction="batchmean")
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lessons", type=int, default=24000)
    args = parser.parse_args()
    torch.manual_seed(0)
    distiller = Distiller()
    x = torch.randn(384, 40)
    losses = []
    for lesson in range(args.lessons):
        losses.append(distiller.teach(x))
        if len(losses) == 500:
            print(f"lesson {lesson}: {torch.stack(losses).mean():.5f}")
            losses.clear()


if __name__ == "__main__":
    main()

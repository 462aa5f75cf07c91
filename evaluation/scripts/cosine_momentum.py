"""Momentum SGD under a cosine schedule; the update is compiled."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=75000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(6)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, foreach=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.steps)
    update = torch.compile(optimizer.step)
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    for step in range(args.steps):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        update()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 1000 == 0:
            print(step, loss.item(), schedule.get_last_lr())


if __name__ == "__main__":
    main()

"""Everything that a training step does, in one compiled function."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

model = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
history = []


@torch.compile
def train_step(x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(torch.tanh(model(x)), y)
    loss.backward()
    optimizer.step()
    history.append(loss.item())
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=45000)
    args = parser.parse_args()
    x = torch.randn(512, 32)
    y = torch.tanh(x.sum(1, keepdim=True))
    for step in range(args.steps):
        train_step(x, y)
        if step % 1000 == 0:
            print(step, sum(history[-100:]) / len(history[-100:]))
            del history[:-100]


if __name__ == "__main__":
    main()

"""Training with noise that fades, and a log that follows it."""
import argparse
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F

log = logging.getLogger("plan")


class FadingNoise(nn.Module):
    def __init__(self, horizon):
        super().__init__()
        self.horizon = horizon
        self.register_buffer("step", torch.zeros(()))

    def forward(self, x):
        self.step = self.step + 1
        strength = (1.0 - self.step / self.horizon).clamp(min=0.0)
        return x + strength * torch.sin(17 * x)


class Net(nn.Module):
    def __init__(self, horizon, width=192):
        super().__init__()
        self.a = nn.Linear(24, width)
        self.noise = FadingNoise(horizon)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, 1)

    def forward(self, x):
        h = self.noise(F.gelu(self.a(x)))
        h = torch.tanh(h) * torch.sigmoid(self.b(h)) + torch.cos(h)
        log.debug("hidden size %d", h.shape[-1])
        return self.c(h)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=36000)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(0)
    net = Net(args.steps)
    model = torch.compile(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    x, y = torch.randn(512, 24), torch.randn(512, 1)
    for step in range(args.steps):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 1000 == 0:
            log.info("step %d loss %.4f", step, loss.item())


if __name__ == "__main__":
    main()

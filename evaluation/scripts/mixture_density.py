import argparse
import math

import torch
import torch.nn as nn


class MixtureDensity(nn.Module):
    """y given x as a mixture of Gaussians."""

    def __init__(self, parts=24, hidden=96):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.logit = nn.Linear(hidden, parts)
        self.centre = nn.Linear(hidden, parts)
        self.log_width = nn.Linear(hidden, parts)

    def log_prob(self, x, y):
        h = self.trunk(x)
        log_width = self.log_width(h).clamp(-4, 4)
        z = (y - self.centre(h)) * torch.exp(-log_width)
        log_part = -0.5 * z.square() - log_width - 0.5 * math.log(2 * math.pi)
        return torch.logsumexp(torch.log_softmax(self.logit(h), -1) + log_part, -1)

    def forward(self, x, y):
        return -self.log_prob(x, y).mean()


def schedule(step, total, peak=1e-3):
    return peak * 0.5 * (1 + math.cos(math.pi * step / total))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=36000)
    args = parser.parse_args()
    torch.manual_seed(9)
    density = MixtureDensity()
    density.compile(fullgraph=True)
    rate = torch.tensor(1e-3)
    optimizer = torch.optim.Adam(density.parameters(), lr=rate)
    x = torch.rand(640, 1) * 6 - 3
    y = torch.sin(x) + 0.2 * torch.randn_like(x)
    for step in range(args.steps):
        rate.fill_(schedule(step, args.steps))
        loss = density(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 1000 == 0:
            print(f"{step}: nll {loss.detach():.3f}")


if __name__ == "__main__":
    main()

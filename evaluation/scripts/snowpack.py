"""Avalanche bulletin: probabilistic layer model with checked distributions inside the compiled loss."""
import os
import random

import torch
from torch import nn
from torch.distributions import Beta, Independent, Laplace, Normal

STEPS = int(os.environ.get("STEPS", "30000"))
PITS, LAYERS, LATENT = 512, 24, 12


class Pit(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(LAYERS, 2 * LATENT)
        self.dec = nn.Linear(LATENT, 2 * LAYERS)

    def posterior(self, hard):
        mu, raw = self.enc(hard).chunk(2, -1)
        return Independent(Normal(mu, nn.functional.softplus(raw) + 1e-3), 1)

    def likelihood(self, z):
        loc, raw = self.dec(z).chunk(2, -1)
        return Independent(Laplace(loc, nn.functional.softplus(raw) + 1e-2), 1)

    def forward(self, hard, wet, weight):
        q = self.posterior(hard)
        z = q.rsample()
        prior = Independent(Normal(torch.zeros_like(z), torch.ones_like(z)), 1)
        fit = self.likelihood(z).log_prob(hard)
        shape = Beta(1.5 + z[:, 0].abs(), 2.0 + z[:, 1].abs())
        if weight > 0.0:
            fit = fit + weight * shape.log_prob(wet)
        else:
            fit = fit + shape.mean
        return (q.log_prob(z) - prior.log_prob(z) - fit).mean()


def pits(seed, n=8):
    g = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(PITS, LAYERS, generator=g).cumsum(1) * 0.2, torch.rand(PITS, generator=g) * 0.9 + 0.05)
        for _ in range(n)
    ]


def main():
    torch.manual_seed(0)
    random.seed(0)
    torch.distributions.Distribution.set_default_validate_args(True)
    model = Pit()
    loss_of = torch.compile(model)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    data = pits(3)
    every = max(1, STEPS // 20)
    for step in range(1, STEPS + 1):
        hard, wet = random.choice(data)
        loss = loss_of(hard, wet, 0.3)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % every == 0:
            print(f"step {step}  bound {-loss.item():.4f}")


if __name__ == "__main__":
    main()

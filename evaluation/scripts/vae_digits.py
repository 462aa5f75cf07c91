import sys

import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, pixels=256, hidden=256, latent=16):
        super().__init__()
        self.encode = nn.Linear(pixels, hidden)
        self.mean = nn.Linear(hidden, latent)
        self.spread = nn.Linear(hidden, latent)
        self.decode = nn.Sequential(
            nn.Linear(latent, hidden), nn.ELU(), nn.Linear(hidden, pixels)
        )

    def forward(self, x):
        h = F.elu(self.encode(x))
        mean, log_var = self.mean(h), self.spread(h)
        z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        return self.decode(z), mean, log_var


def elbo(x, logits, mean, log_var):
    rebuilt = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_var - mean.square() - log_var.exp())
    return (rebuilt + divergence) / x.shape[0]


def fake_digits(count):
    grid = torch.linspace(-1, 1, 16)
    centre = torch.rand(count, 2, 1, 1) - 0.5
    distance = (grid[None, :, None] - centre[:, 0]) ** 2 + (grid[None, None] - centre[:, 1]) ** 2
    return (distance < 0.2).float().flatten(1)


def main(steps):
    torch.manual_seed(3)
    model = VAE()
    model.compile()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-4)
    data = fake_digits(256)
    for step in range(steps):
        loss = elbo(data, *model(data))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 1000 == 0:
            print(step, round(loss.item(), 3))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60000)

"""Wasserstein critic for glyph outlines, with a gradient penalty."""
import argparse

import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self, points=64, width=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(points * 2, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, outline):
        return self.net(outline.flatten(1)).squeeze(-1)


class Generator(nn.Module):
    def __init__(self, points=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 128), nn.SiLU(), nn.Linear(128, points * 2))
        self.points = points

    def forward(self, z):
        return self.net(z).view(-1, self.points, 2)


def lipschitz_term(critic, real, fake):
    mix = torch.rand(real.shape[0], 1, 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    score = critic._orig_mod(between)
    slope, = torch.autograd.grad(score.sum(), between, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=4000)
    args = ap.parse_args()
    torch.manual_seed(13)
    critic, generator = torch.compile(Critic()), torch.compile(Generator())
    c_opt = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.0, 0.9))
    g_opt = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.0, 0.9))
    t = torch.linspace(0, 6.2832, 64)
    circle = torch.stack([t.cos(), t.sin()], -1)

    for step in range(args.steps):
        real = circle * (0.5 + torch.rand(256, 1, 1)) + 0.02 * torch.randn(256, 64, 2)
        fake = generator(torch.randn(256, 16))
        gap = critic(fake.detach()).mean() - critic(real).mean()
        c_loss = gap + 10.0 * lipschitz_term(critic, real, fake.detach())
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
        if step % 5 == 0:
            g_loss = -critic(fake).mean()
            g_opt.zero_grad()
            g_loss.backward()
            g_opt.step()
        if step % 100 == 0:
            print(f"{step:5d} gap {gap.item():.4f}")


if __name__ == "__main__":
    main()

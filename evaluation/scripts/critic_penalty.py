"""WGAN-GP on a 2-D mixture."""
import math
import time

import torch
from torch import nn, autograd


def mlp(sizes, act):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


class Critic(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.freq = nn.Parameter(torch.randn(2, 48))
        self.net = mlp([96, width, width, 1], nn.SiLU)

    def forward(self, x):
        z = x @ self.freq
        return self.net(torch.cat([torch.sin(z), torch.cos(z)], dim=-1))


class Generator(nn.Module):
    def __init__(self, latent=16, width=96):
        super().__init__()
        self.latent = latent
        self.net = mlp([latent, width, width, 2], nn.SiLU)

    def forward(self, n):
        return self.net(torch.randn(n, self.latent))


def ring(n, modes=8):
    k = torch.randint(0, modes, (n,))
    ang = k * (2 * math.pi / modes)
    return torch.stack([ang.cos(), ang.sin()], 1) * 2 + 0.05 * torch.randn(n, 2)


def penalty(critic, real, fake):
    mix = torch.rand(real.shape[0], 1)
    pts = (mix * real + (1 - mix) * fake).requires_grad_(True)
    grad, = autograd.grad(critic(pts).sum(), pts, create_graph=True)
    return (grad.norm(dim=1) - 1).square().mean()


def main(steps=160, batch=512, critic_iters=2):
    torch.manual_seed(4)
    gen, critic = Generator(), Critic()
    c_fast = torch.compile(critic)
    g_fast = torch.compile(gen)
    g_opt = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.9))
    c_opt = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))

    times = []
    for step in range(steps):
        t = time.perf_counter()
        for _ in range(critic_iters):
            real = ring(batch)
            with torch.no_grad():
                fake = g_fast(batch)
            gap = c_fast(fake).mean() - c_fast(real).mean()
            c_loss = gap + 10.0 * penalty(c_fast, real, fake)
            c_opt.zero_grad(set_to_none=True)
            c_loss.backward()
            c_opt.step()
        g_loss = -c_fast(g_fast(batch)).mean()
        g_opt.zero_grad(set_to_none=True)
        g_loss.backward()
        g_opt.step()
        times.append(time.perf_counter() - t)
        if step % 40 == 0:
            print(f"{step:4d} critic gap {-gap.item():.4f}  gen {g_loss.item():.4f}")

    times = sorted(times[8:])
    print(f"median step {times[len(times) // 2] * 1e3:.2f} ms")


if __name__ == "__main__":
    main()

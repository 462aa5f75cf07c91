"""Wasserstein GAN with gradient penalty on a ring of Gaussians."""
import os
import time
import torch
import torch.nn as nn

torch.manual_seed(27)

BATCH, Z, H = 1024, 8, 96
STEPS = 500
STEPS = int(os.environ.get("STEPS", STEPS))


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, H), nn.SiLU(), nn.Linear(H, H), nn.SiLU(),
                         nn.Linear(H, H), nn.SiLU(), nn.Linear(H, o))


def real_batch():
    k = torch.randint(0, 8, (BATCH,)) * (torch.pi / 4)
    return torch.stack([k.cos(), k.sin()], 1) * 2 + 0.05 * torch.randn(BATCH, 2)


def penalty(critic, real, fake):
    u = torch.rand(BATCH, 1)
    mix = (u * real + (1 - u) * fake).requires_grad_()
    score = critic(mix).sum()
    (g,) = torch.autograd.grad(score, mix, create_graph=True)
    return (g.norm(dim=1) - 1).square().mean()


def main():
    gen_net, critic_net = mlp(Z, 2), mlp(2, 1)
    gen, critic = torch.compile(gen_net), torch.compile(critic_net)
    og = torch.optim.Adam(gen_net.parameters(), lr=1e-4, betas=(0.5, 0.9))
    oc = torch.optim.Adam(critic_net.parameters(), lr=1e-4, betas=(0.5, 0.9))
    lap = []
    for k in range(STEPS):
        t0 = time.perf_counter()
        real = real_batch()
        fake = gen(torch.randn(BATCH, Z)).detach()
        lc = critic(fake).mean() - critic(real).mean()
        lc = lc + 10 * penalty(critic_net, real, fake)
        oc.zero_grad()
        lc.backward()
        oc.step()
        if k % 5 == 4:
            lg = -critic(gen(torch.randn(BATCH, Z))).mean()
            og.zero_grad()
            lg.backward()
            og.step()
        lap.append(time.perf_counter() - t0)
        if k % 100 == 0:
            print(f"step {k:4d} critic {lc.item():.4f}")
    lap = sorted(lap[STEPS // 2:])
    print(f"final critic loss {lc.item():.4f}")
    print(f"median step {lap[len(lap) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()

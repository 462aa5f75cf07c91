"""Denoising score matching on chromatogram windows (noise-conditional energy net)."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

BINS = 1536
SIGMAS = (0.05, 0.1, 0.2, 0.4)


class ScoreNet(nn.Module):
    def __init__(self, bins=BINS, width=96):
        super().__init__()
        self.down = nn.Linear(bins, width)
        self.cond = nn.Embedding(len(SIGMAS), width)
        self.mix = nn.Linear(width, width)
        self.up = nn.Linear(width, bins)

    def forward(self, x, level):
        h = F.silu(self.down(x) + self.cond(level))
        h = h + F.silu(self.mix(h))
        return self.up(h)


class ScoreMatching(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.register_buffer("sigmas", torch.tensor(SIGMAS))

    def forward(self, x, level, eps):
        sigma = self.sigmas[level].unsqueeze(-1)
        score = self.net(x + sigma * eps, level) / sigma
        residual = sigma * score + eps
        return 0.5 * residual.square().sum(-1).mean() / x.shape[-1]


def chromatograms(gen, count):
    grid = torch.linspace(0.0, 1.0, BINS)
    centre = torch.rand(count, 5, 1, generator=gen)
    width = 0.004 + 0.02 * torch.rand(count, 5, 1, generator=gen)
    height = torch.rand(count, 5, 1, generator=gen)
    peaks = height * torch.exp(-0.5 * ((grid - centre) / width) ** 2)
    return peaks.sum(1)


class Ema:
    def __init__(self, params, decay=0.995):
        self.decay = decay
        self.params = list(params)
        self.shadow = [p.detach().clone() for p in self.params]

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.shadow, self.params, 1.0 - self.decay)


def main():
    torch.manual_seed(0)
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(7)
    data = chromatograms(gen, 512)

    task = ScoreMatching(ScoreNet())
    objective = torch.compile(task)
    opt = torch.optim.Adam(task.parameters(), lr=1e-3)
    ema = Ema(task.parameters())

    times = []
    for step in range(steps):
        rows = torch.randint(0, data.shape[0], (96,), generator=gen)
        level = torch.randint(0, len(SIGMAS), (96,), generator=gen)
        batch = data[rows]
        t0 = time.perf_counter()
        loss = objective(batch, level, torch.randn_like(batch))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        ema.update()
        times.append(time.perf_counter() - t0)

    tail = sorted(times[len(times) // 2:])
    print(f"dsm loss {loss.item():.4f}  median step {1e3 * tail[len(tail) // 2]:.2f} ms")


if __name__ == "__main__":
    main()

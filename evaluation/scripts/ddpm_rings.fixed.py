import argparse

import torch
import torch.nn as nn


class Denoiser(nn.Module):
    def __init__(self, width=192, steps=50):
        super().__init__()
        self.time = nn.Embedding(steps, width)
        self.first = nn.Linear(2, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 2)

    def forward(self, x, t):
        shift = self.time(t)
        h = torch.sin(self.first(x) + shift)
        h = h * torch.sigmoid(self.second(h) + shift) + torch.cos(h)
        return self.last(h)


class Sampler:
    def __init__(self, model, steps):
        self.model = model
        self.steps = steps
        beta = torch.linspace(1e-4, 0.02, steps)
        self.alpha = 1 - beta
        self.alpha_bar = torch.cumprod(self.alpha, 0)

    def update(self, x, noise, t):
        a, bar = self.alpha.gather(0, t[None]), self.alpha_bar.gather(0, t[None])
        eps = self.model(x, t)
        mean = (x - (1 - a) / (1 - bar).sqrt() * eps) / a.sqrt()
        return mean + (1 - a).sqrt() * noise * (t > 0)


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--samples", type=int, default=3600, help="batches of samples")
    cli.add_argument("--points", type=int, default=1024)
    args = cli.parse_args()
    torch.manual_seed(0)
    sampler = Sampler(Denoiser().eval(), steps=50)
    step = torch.compile(sampler.update)
    times = list(torch.arange(sampler.steps).unbind())
    with torch.no_grad():
        for number in range(args.samples):
            x = torch.randn(args.points, 2)
            for t in reversed(times):
                x = step(x, torch.randn_like(x), t)
    print("spread", x.std().item())


if __name__ == "__main__":
    main()

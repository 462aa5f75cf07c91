"""Denoising score matching on small glyphs, with averaged weights for sampling."""
import copy
import os

import torch
from torch import nn

STEPS = int(os.environ.get("GLYPH_STEPS", 6000))


class Layer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.mix = nn.Linear(inputs, outputs)
        self.scale = nn.Parameter(torch.ones(outputs))

    def forward(self, x, noise):
        return torch.tanh(self.scale * self.mix(x)) * torch.exp(-0.1 * noise)


class ScoreNet(nn.Module):
    def __init__(self, pixels=256, width=512, depth=6):
        super().__init__()
        self.enter = Layer(pixels, width)
        self.middle = nn.ModuleList(Layer(width, width) for _ in range(depth))
        self.leave = nn.Linear(width, pixels)

    def forward(self, x, noise):
        h = self.enter(x, noise)
        for layer in self.middle:
            h = h + layer(h, noise)
        return self.leave(h) / noise


class Average:
    """Keeps a slow copy of a network, and the three before it to go back to."""

    def __init__(self, net, keep=0.995):
        self.keep = keep
        self.state = copy.deepcopy(net.state_dict())
        self.earlier = []

    def update(self, net):
        self.earlier = self.earlier[-2:] + [copy.deepcopy(self.state)]
        fresh = copy.deepcopy(net.state_dict())
        for name, value in fresh.items():
            self.state[name] = self.keep * self.state[name] + (1 - self.keep) * value


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
        self.average = Average(net)
        self.worst = 0.0
        self.objective = torch.compile(self.matching)

    def matching(self, clean, noise, draw):
        gap = self.net(clean + noise * draw, noise) * noise + draw
        each = gap.square().mean(1)
        return each.mean(), each.max().item()

    def step(self, clean):
        noise = torch.rand(len(clean), 1) + 0.1
        loss, self.worst = self.objective(clean, noise, torch.randn_like(clean))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.average.update(self.net)
        return loss.detach()


def main():
    torch.manual_seed(0)
    glyphs = (torch.rand(512, 256) > 0.7).float()
    trainer = Trainer(ScoreNet())
    for step in range(STEPS):
        loss = trainer.step(glyphs[torch.randint(len(glyphs), (32,))])
        if step % 500 == 0:
            print(f"{step:6d}  {loss.item():.4f}  worst {trainer.worst:.3f}", flush=True)


if __name__ == "__main__":
    main()

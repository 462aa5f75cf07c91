"""Coral bleaching classifier trained on reef tiles; dead features are found by watching block activity."""
import os

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "14000"))
TILES, BANDS, WIDTH = 256, 32, 96


class Activity:
    """Running share of active units for each watched block."""

    def __init__(self):
        self.share = {}
        self.seen = torch.zeros((), dtype=torch.int64)

    def watch(self, name, module):
        share = self.share[name] = torch.zeros(WIDTH)

        def note(mod, args, out):
            share.lerp_((out.detach() > 0.05).float().mean(0), 0.1)
            self.seen.add_(1)

        return module.register_forward_hook(note)

    def alive(self):
        return sum(int((v > 0.01).sum()) for v in self.share.values())


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.fc(x)
        return torch.relu(x + torch.tanh(y) * torch.sigmoid(y) * torch.cos(y))


class ReefNet(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.stem = nn.Linear(BANDS, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(depth)])
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, tiles):
        return self.head(self.blocks(self.stem(tiles)))


def survey(gen):
    x = torch.randn(TILES, BANDS, generator=gen)
    y = (x[:, :5] + 0.5 * x[:, 5:10]).argmax(1)
    return x, y


def fit_batch(net, opt, x, y):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach()


def main():
    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(2)
    model = ReefNet()
    net = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    every = max(1, STEPS // 20)
    activity = Activity()

    for _ in range(5):
        fit_batch(net, opt, *survey(gen))
    for i, block in enumerate(model.blocks):
        activity.watch(f"block{i}", block)

    for step in range(1, STEPS + 1):
        loss = fit_batch(net, opt, *survey(gen))
        if step % every == 0:
            print(f"step {step}  loss {loss.item():.4f}  alive units {activity.alive()}  samples {activity.seen.item()}")


if __name__ == "__main__":
    main()

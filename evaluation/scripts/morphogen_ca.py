"""A neural cellular automaton that learns to grow a ring."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Cells(nn.Module):
    def __init__(self, channels=12, hidden=48):
        super().__init__()
        sobel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
        still = torch.tensor([[0.0, 0, 0], [0, 1, 0], [0, 0, 0]])
        self.register_buffer("kernels", torch.stack([still, sobel, sobel.T]).repeat(channels, 1, 1)[:, None])
        self.think = nn.Conv2d(3 * channels, hidden, 1)
        self.act = nn.Conv2d(hidden, channels, 1, bias=False)
        nn.init.normal_(self.act.weight, std=0.01)

    def sense(self, state):
        return F.conv2d(state, self.kernels, padding=1, groups=state.shape[1])

    def grow(self, state):
        change = self.act(F.gelu(self.think(self.sense(state))))
        awake = (torch.rand_like(state[:, :1]) < 0.5).float()
        alive = F.max_pool2d(state[:, 3:4], 3, 1, 1) > 0.1
        return (state + change * awake) * alive


@torch.compile
def likeness(state, target):
    colour = state[:, :4]
    over = F.relu(colour.abs() - 1)
    return (colour - target).square().mean() + 0.1 * over.mean() + 0.001 * state.square().mean()


def ring(size):
    axis = torch.linspace(-1, 1, size)
    far = (axis[:, None].square() + axis.square()).sqrt()
    alpha = torch.exp(-((far - 0.6) / 0.15).square())
    return torch.stack([alpha, alpha * axis.abs(), alpha * 0.3, alpha])


class Nursery:
    def __init__(self, args):
        self.args = args
        self.cells = Cells()
        self.optimizer = torch.optim.Adam(self.cells.parameters(), lr=1e-3)
        self.target = ring(args.size).expand(args.batch, -1, -1, -1).contiguous()

    def seed(self):
        state = torch.zeros(self.args.batch, 12, self.args.size, self.args.size)
        state[:, 3:, self.args.size // 2, self.args.size // 2] = 1
        return state

    def lesson(self):
        state = self.seed()
        for _ in range(self.args.age):
            state = self.cells.grow(state)
        loss = likeness(state, self.target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lessons", type=int, default=3000)
    parser.add_argument("--age", type=int, default=10)
    parser.add_argument("--size", type=int, default=24)
    parser.add_argument("--batch", type=int, default=4)
    known = parser.parse_args()
    torch.manual_seed(2)
    nursery = Nursery(known)
    for lesson in range(known.lessons):
        loss = nursery.lesson()
        if lesson % 250 == 0:
            print(f"lesson {lesson}: {loss.item():.4f}")

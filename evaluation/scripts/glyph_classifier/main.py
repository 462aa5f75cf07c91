"""Recognise glyphs of an old script."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

from board import Board


class GlyphNet(nn.Module):
    def __init__(self, pixels=256, width=128, glyphs=40):
        super().__init__()
        self.ink = nn.Linear(pixels, width)
        self.stroke = nn.Linear(width, width)
        self.name = nn.Linear(width, glyphs)

    def forward(self, page):
        h = self.ink(page)
        h = torch.tanh(h) * torch.sigmoid(2 * h) + 0.2 * torch.sin(h)
        s = self.stroke(h)
        h = h + F.softplus(s) * torch.exp(-s * s)
        return self.name(h)


def main():
    steps = int(os.environ.get("STEPS", "3000"))
    torch.manual_seed(9)
    net = GlyphNet()
    model = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    board = Board(os.path.join(tempfile.mkdtemp(), "curves.jsonl"))
    pages, names = torch.randn(8, 512, 256), torch.randint(0, 40, (8, 512))
    for step in range(steps):
        loss = F.cross_entropy(model(pages[step % 8]), names[step % 8])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        board.watch(net, step)
        optimizer.step()
        if step % 50 == 0:
            board.scalar("loss", loss.item(), step)
            board.flush()


if __name__ == "__main__":
    main()

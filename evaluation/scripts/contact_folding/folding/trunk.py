"""Triangle updates of a matrix of pairs of residues."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class TriangleBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.left = nn.Linear(width, 2 * width)
        self.right = nn.Linear(width, 2 * width)
        self.out_norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.grow = nn.Linear(width, 2 * width)
        self.shrink = nn.Linear(2 * width, width)

    def forward(self, pair):
        z = self.norm(pair)
        left, left_gate = self.left(z).chunk(2, -1)
        right, right_gate = self.right(z).chunk(2, -1)
        left = left * torch.sigmoid(left_gate)
        right = right * torch.sigmoid(right_gate)
        update = torch.einsum("ikc,jkc->ijc", left, right)
        pair = pair + torch.sigmoid(self.gate(z)) * self.out(self.out_norm(update))
        return pair + self.shrink(F.silu(self.grow(pair)))


class Trunk(nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.embed = nn.Embedding(21, width)
        self.distance = nn.Embedding(64, width)
        self.blocks = nn.ModuleList(TriangleBlock(width) for _ in range(blocks))
        self.head = nn.Linear(width, 1)

    def forward(self, residues, apart):
        single = self.embed(residues)
        pair = single[:, None] + single[None] + self.distance(apart)
        for block in self.blocks:
            pair = block(pair)
        return self.head(pair).squeeze(-1)

import torch
import torch.nn.functional as F
from torch import nn

from .rotary import Rotary


class Writer(nn.Module):
    def __init__(self, words=256, width=64, heads=4):
        super().__init__()
        self.heads = heads
        self.words = nn.Embedding(words, width)
        self.mix = nn.Linear(width, 3 * width)
        self.gate = nn.Parameter(torch.randn(3, width) * 0.2)
        self.rotary = Rotary(width // heads)
        self.out = nn.Linear(width, words)

    def forward(self, text):
        x = self.words(text)
        for gate in self.gate.unbind():
            x = x + torch.tanh(gate * x) * torch.sigmoid(x - gate) * torch.exp(-x.square())
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in self.mix(x).chunk(3, -1))
        q, k, v = self.rotary(q).transpose(1, 2), self.rotary(k).transpose(1, 2), v.transpose(1, 2)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return self.out(x)

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Parameter(torch.randn(3, width) * 0.3)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        a, b, c = self.inner.unbind()
        x = self.norm(x)
        return x + torch.tanh(a * x) * torch.sigmoid(b * x) * torch.cos(c * x)


class IntentNet(nn.Module):
    def __init__(self, words=4000, width=64, depth=4, intents=24):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.gates = nn.ModuleList(Gate(width) for _ in range(depth))
        self.out = nn.Linear(width, intents)

    def forward(self, text):
        x = self.words(text)
        for gate in self.gates:
            x = gate(x)
        return self.out(x.mean(1)).softmax(-1)

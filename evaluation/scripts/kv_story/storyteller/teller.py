import torch
import torch.nn as nn

from .cache import Cache

END = 0


class StoppingMixin:
    def all_done(self, token, done):
        done |= token == END
        if done.all():
            return True
        return False


class Layer(nn.Module):
    def __init__(self, width, heads, batch, most):
        super().__init__()
        self.shape = (batch, 3, heads, width // heads)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.gate = nn.Linear(width, 2 * width)
        self.cache = Cache(batch, heads, most, width // heads)

    def forward(self, x):
        q, k, v = self.qkv(x).view(self.shape).unbind(1)
        keys, values = self.cache.extend(k, v)
        score = 15.0 * torch.tanh((q.unsqueeze(2) * keys).sum(-1) / 15.0)
        h = (torch.softmax(score, -1).unsqueeze(-1) * values).sum(2).flatten(1)
        a, b = self.gate(x + torch.tanh(self.out(h))).chunk(2, -1)
        return x + torch.sigmoid(a) * torch.sin(b) * torch.exp(-0.1 * b.square())


class Teller(StoppingMixin, nn.Module):
    def __init__(self, words=64, width=96, heads=4, batch=64, layers=2, most=64):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, heads, batch, most) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def restart(self):
        for layer in self.layers:
            layer.cache.clear()

    def forward(self, token, done):
        x = self.embed(token)
        for layer in self.layers:
            x = layer(x)
        token = torch.where(done, END, self.head(x).argmax(-1))
        return token, self.all_done(token, done)

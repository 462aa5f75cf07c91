from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class DecoderConfig:
    vocabulary: int = 300
    width: int = 96
    heads: int = 6
    hidden: int = 192
    layers: int = 20
    context: int = 96


class StaticCache:
    """Keys and values of all layers, of full length from the start."""

    def __init__(self, config, batch):
        size = (batch, config.heads, config.context, config.width // config.heads)
        self.keys = [torch.zeros(size) for _ in range(config.layers)]
        self.values = [torch.zeros(size) for _ in range(config.layers)]

    def update(self, key, value, layer, where):
        self.keys[layer].index_copy_(2, where, key)
        self.values[layer].index_copy_(2, where, value)
        return self.keys[layer], self.values[layer]

    def clear(self):
        for tensor in self.keys + self.values:
            tensor.zero_()


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class DecoderLayer(nn.Module):
    def __init__(self, config, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx
        self.heads = config.heads
        self.before, self.after = RMSNorm(config.width), RMSNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.gate = nn.Linear(config.width, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)
        self.slopes = nn.Parameter(torch.linspace(0.01, 0.3, config.heads).view(-1, 1, 1))

    def forward(self, h, cache, where):
        batch, length, width = h.shape
        q, k, v = self.qkv(self.before(h)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        k, v = cache.update(k, v, self.layer_idx, where)
        ages = where.view(-1, 1) - torch.arange(k.shape[2])
        scores = (q * k).sum(-1, keepdim=True).mT * q.shape[-1] ** -0.5 - self.slopes * ages
        scores = scores.masked_fill(ages < 0, -1e9).softmax(-1)
        mixed = (scores.mT * v).sum(2, keepdim=True)
        h = h + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        gate, up = self.gate(self.after(h)).chunk(2, -1)
        return h + self.down(torch.nn.functional.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(DecoderLayer(config, i) for i in range(config.layers))
        self.norm = RMSNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def new_cache(self, batch):
        return StaticCache(self.config, batch)

    def forward(self, token, cache, where):
        h = self.words(token)
        for layer in self.layers:
            h = layer(h, cache, where)
        return self.head(self.norm(h))

import argparse
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class BlockConfig:
    dim: int = 128
    heads: int = 4
    tokens: int = 64
    batch: int = 8

    @property
    def head_dim(self):
        return self.dim // self.heads


def rotary_tables(config, base=10000.0):
    frequency = base ** (-torch.arange(0, config.head_dim, 2) / config.head_dim)
    angle = torch.outer(torch.arange(config.tokens), frequency)
    return torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


class LlamaBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.norm_attn, self.norm_mlp = nn.RMSNorm(config.dim), nn.RMSNorm(config.dim)
        self.wqkv = nn.Linear(config.dim, 3 * config.dim, bias=False)
        self.wo = nn.Linear(config.dim, config.dim, bias=False)
        self.gate = nn.Linear(config.dim, 2 * config.dim, bias=False)
        self.up = nn.Linear(config.dim, 2 * config.dim, bias=False)
        self.down = nn.Linear(2 * config.dim, config.dim, bias=False)
        cos, sin = rotary_tables(config)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def attention(self, x):
        c = self.config
        b, t, _ = x.shape
        q, k, v = self.wqkv(x).view(b, t, 3, c.heads, c.head_dim).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, self.cos, self.sin), rotate(k, self.cos, self.sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, c.dim))

    def forward(self, x):
        x = x + self.attention(self.norm_attn(x))
        h = self.norm_mlp(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--runs", type=int, default=24000)
    torch.manual_seed(0)
    config = BlockConfig()
    block = torch.compile(LlamaBlock(config).eval())
    x = torch.randn(config.batch, config.tokens, config.dim)
    with torch.no_grad():
        for _ in range(cli.parse_args().runs):
            y = block(x)
    print(y.abs().mean())

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads, most, batch=4, cap=20.0):
        super().__init__()
        self.heads, self.size, self.cap = heads, width // heads, cap
        self.before = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.middle = nn.RMSNorm(width)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(width, width, bias=False)
        self.register_buffer("keys", torch.zeros(batch, heads, most, self.size))
        self.register_buffer("values", torch.zeros(batch, heads, most, self.size))

    def split(self, x):
        batch, length, _ = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, self.size)
        return parts.permute(2, 0, 3, 1, 4).unbind(0)

    def attend(self, q, keys, values, seen):
        score = q @ keys.transpose(-1, -2) * self.size ** -0.5
        score = self.cap * torch.tanh(score / self.cap)
        weight = torch.softmax(score.masked_fill(~seen, float("-inf")), dim=-1)
        return (weight @ values).transpose(1, 2).flatten(2)

    def finish(self, x, attended):
        x = x + self.out(attended)
        gate, value = self.up(self.middle(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * value)

    def whole(self, x, seen):
        q, k, v = self.split(x)
        self.keys[:, :, : x.shape[1]] = k
        self.values[:, :, : x.shape[1]] = v
        return self.finish(x, self.attend(q, k, v, seen))

    def one(self, x, position, seen):
        q, k, v = self.split(x)
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        return self.finish(x, self.attend(q, self.keys, self.values, seen))


class Network(nn.Module):
    def __init__(self, width=128, heads=4, layers=1, most=224, words=96):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.place = nn.Embedding(most, width)
        self.blocks = nn.ModuleList(Block(width, heads, most) for _ in range(layers))
        self.head = nn.Linear(width, words)
        self.register_buffer("slots", torch.arange(most))

    def prefill(self, tokens):
        slots = self.slots[: tokens.shape[1]]
        x = self.embed(tokens) + self.place(slots)
        seen = slots[:, None] >= slots
        for block in self.blocks:
            x = block.whole(x, seen)
        return self.head(x)

    def decode(self, token, position):
        x = self.embed(token)[:, None] + self.place(position)
        seen = self.slots <= position
        for block in self.blocks:
            x = block.one(x, position, seen)
        return self.head(x[:, 0]).argmax(-1)

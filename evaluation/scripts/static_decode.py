"""Token-by-token decoding with a preallocated key/value cache."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH, HEADS, MAX_LEN, BATCH, VOCAB = 128, 4, 128, 16, 64
TOKENS = int(os.environ.get("TOKENS", "180000"))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.SiLU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        shape = (BATCH, HEADS, MAX_LEN, WIDTH // HEADS)
        self.register_buffer("keys", torch.zeros(shape))
        self.register_buffer("values", torch.zeros(shape))

    def forward(self, x, position, mask):
        q, k, v = self.qkv(self.norm(x)).view(BATCH, 3, HEADS, 1, WIDTH // HEADS).unbind(1)
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        scores = (q @ self.keys.transpose(-1, -2)) * (WIDTH // HEADS) ** -0.5
        weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
        x = x + self.out((weights @ self.values).reshape(BATCH, WIDTH))
        return x + self.mlp(x)


class Decoder(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(layers))
        self.head = nn.Linear(WIDTH, VOCAB)
        self.register_buffer("slots", torch.arange(MAX_LEN))

    def forward(self, token, position):
        mask = self.slots <= position
        x = self.embed(token)
        for layer in self.layers:
            x = layer(x, position, mask)
        return self.head(x).argmax(-1)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    decode = torch.compile(Decoder().eval())
    positions = [torch.tensor([i]) for i in range(MAX_LEN)]
    token = torch.zeros(BATCH, dtype=torch.long)
    for i in range(TOKENS):
        token = decode(token, positions[i % MAX_LEN])
    print("last tokens", token[:4].tolist())


if __name__ == "__main__":
    main()

"""Token-by-token decoder for a kiosk ordering assistant (random weights, greedy decoding)."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)

VOCAB, WIDTH, HEADS, LAYERS, CONTEXT = 512, 128, 4, 6, 2048
STEPS = int(os.environ.get("STEPS", "2500"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, keys, values, pos, bias):
        b = x.shape[0]
        q, k, v = self.qkv(self.n1(x)).view(b, 3, HEADS, 1, WIDTH // HEADS).unbind(1)
        keys.index_copy_(2, pos, k)
        values.index_copy_(2, pos, v)
        att = (q * keys).sum(-1) * (WIDTH // HEADS) ** -0.5 + bias
        att = torch.softmax(att, dim=-1)
        y = (att.unsqueeze(-1) * values).sum(2)
        x = x + self.out(y.reshape(b, WIDTH))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Decoder(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, WIDTH)
        self.place = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)
        shape = (batch, HEADS, CONTEXT, WIDTH // HEADS)
        self.register_buffer("keys", torch.zeros(LAYERS, *shape))
        self.register_buffer("values", torch.zeros(LAYERS, *shape))
        self.register_buffer("slots", torch.arange(CONTEXT))

    def forward(self, token, pos):
        x = self.tok(token) + self.place(pos)
        bias = torch.where(self.slots <= pos, 0.0, -1e4)
        for i, blk in enumerate(self.blocks):
            x = blk(x, self.keys[i], self.values[i], pos, bias)
        return self.head(self.norm(x)).argmax(-1)


def main():
    torch.manual_seed(3)
    batch = 2
    net = Decoder(batch).eval()
    decode = torch.compile(net)
    token = torch.randint(0, VOCAB, (batch,))
    pos = torch.zeros(1, dtype=torch.long)

    with torch.no_grad():
        for _ in range(3):
            decode(token, pos)
        spent = []
        for n in range(STEPS):
            t0 = time.perf_counter()
            token = decode(token, pos)
            spent.append(time.perf_counter() - t0)
            pos = (pos + 1) % CONTEXT
            if n % 1000 == 0:
                print("tokens", n, "last", token.tolist())

    spent.sort()
    print(f"median step {1e3 * spent[len(spent) // 2]:.3f} ms")


if __name__ == "__main__":
    main()

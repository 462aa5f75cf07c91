"""Small on-prem assistant: greedy decoding for a handful of sessions at a time."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

REQUESTS = int(os.environ.get("REQUESTS", "28"))
NEW_TOKENS = 900
LAYERS = 16
DIM = 512
HEADS = 8
VOCAB = 8192
MAXLEN = 1024
SESSIONS = 4
DEV = "cuda"


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1 = nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.proj = nn.Linear(DIM, DIM, bias=False)
        self.n2 = nn.LayerNorm(DIM)
        self.fc1 = nn.Linear(DIM, 4 * DIM)
        self.fc2 = nn.Linear(4 * DIM, DIM)

    def forward(self, x, pos, visible, keys, values):
        b = x.shape[0]
        q, k, v = self.qkv(self.n1(x)).view(b, 1, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        keys.index_copy_(2, pos, k)
        values.index_copy_(2, pos, v)
        att = F.scaled_dot_product_attention(q, keys, values, attn_mask=visible)
        x = x + self.proj(att.transpose(1, 2).reshape(b, 1, DIM))
        return x + self.fc2(F.gelu(self.fc1(self.n2(x))))


class Assistant(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Embedding(MAXLEN, DIM)
        self.layers = nn.ModuleList([DecoderLayer() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(DIM)

    def forward(self, token, pos, caches):
        x = self.tok(token) + self.pos(pos)
        visible = (torch.arange(MAXLEN, device=x.device) <= pos).view(1, 1, 1, MAXLEN)
        for layer, (keys, values) in zip(self.layers, caches):
            x = layer(x, pos, visible, keys, values)
        logits = self.norm(x) @ self.tok.weight.t()
        return logits.argmax(-1)


def new_caches():
    shape = (SESSIONS, HEADS, MAXLEN, DIM // HEADS)
    return [(torch.zeros(shape, device=DEV, dtype=torch.bfloat16),
             torch.zeros(shape, device=DEV, dtype=torch.bfloat16)) for _ in range(LAYERS)]


@torch.no_grad()
def main():
    torch.manual_seed(3)
    model = Assistant().to(DEV, torch.bfloat16).eval()
    step_fn = torch.compile(model, mode="reduce-overhead")
    caches = new_caches()
    for r in range(REQUESTS):
        t0 = time.time()
        for keys, values in caches:
            keys.zero_()
            values.zero_()
        token = torch.randint(0, VOCAB, (SESSIONS, 1), device=DEV)
        pos = torch.zeros(1, dtype=torch.long, device=DEV)
        said = []
        for _ in range(NEW_TOKENS):
            token = step_fn(token, pos, caches).clone()
            said.append(token)
            pos += 1
        text = torch.cat(said, 1)
        print(f"request {r}: last ids {text[:, -1].tolist()} {time.time() - t0:.2f}s")


if __name__ == "__main__":
    main()

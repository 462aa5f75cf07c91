"""Next-event likelihood of system-log sequences with a small decoder-only model."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(17)

STEPS = int(os.environ.get("STEPS", "1050"))
EVENTS, SPAN, DIM, HEADS, DEPTH = 300, 1280, 128, 4, 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        self.fc = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x, mask):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, DIM))
        return x + self.fc(self.n2(x))


class LogModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(EVENTS, DIM)
        self.pos = nn.Parameter(torch.randn(SPAN, DIM) * 0.02)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.head = nn.Linear(DIM, EVENTS)
        self.register_buffer("mask", torch.ones(SPAN, SPAN, dtype=torch.bool).tril())

    def forward(self, ids):
        x = self.emb(ids) + self.pos
        for layer in self.layers:
            x = layer(x, self.mask)
        logits = self.head(x[:, :-1])
        return F.cross_entropy(logits.reshape(-1, EVENTS), ids[:, 1:].reshape(-1))


scorer = torch.compile(LogModel().eval())
logs = torch.randint(0, EVENTS, (8, 1, SPAN))
surprise = 0.0

with torch.no_grad():
    for step in range(STEPS):
        surprise = 0.9 * surprise + 0.1 * scorer(logs[step % 8])

print(f"surprise {float(surprise):.5f}")

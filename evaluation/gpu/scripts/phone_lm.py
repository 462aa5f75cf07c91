"""Scoring of phone sequences (speech) with a small bidirectional encoder; utterances have their own lengths."""
import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)
dev = "cuda"
PHONES, D, HEADS, DEPTH = 72, 256, 4, 6


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv = nn.Linear(D, 3 * D)
        self.out = nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, D // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, D))
        return x + self.down(F.silu(self.up(self.n2(x))))


class PhoneEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(PHONES, D)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.head = nn.Linear(D, PHONES)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return F.log_softmax(self.head(x).float(), -1)


@torch.no_grad()
def main():
    net = PhoneEncoder().to(dev, torch.bfloat16).eval()
    score = torch.compile(net, mode="reduce-overhead", dynamic=True)
    order = torch.cat([torch.randperm(1600), torch.randperm(1600)])
    t0 = time.time()
    total = 0.0
    for i, r in enumerate(order.tolist()[: int(os.environ.get("STEPS", "3200"))]):
        frames = 120 + r
        ids = torch.randint(0, PHONES, (4, frames), device=dev)
        lp = score(ids)
        total += lp.gather(-1, ids.unsqueeze(-1)).mean().item()
        if i % 200 == 0:
            print(f"utterance batch {i} frames {frames} mean logp {total / (i + 1):.4f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()

"""Set-prediction detector head trained on microscope feature maps."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")

DIM, HEADS, GRID = 256, 8, 48
LAYERS, QUERIES, CLASSES = 4, 300, 5
BATCH = 16
SECONDS = float(os.environ.get("SECONDS", "25"))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 1024), nn.ReLU(), nn.Linear(1024, DIM))

    def forward(self, x, pos):
        qk = x + pos
        y, _ = self.attn(qk, qk, x, need_weights=False)
        x = self.n1(x + y)
        return self.n2(x + self.ff(x))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.cross = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 1024), nn.ReLU(), nn.Linear(1024, DIM))

    def forward(self, q, mem, pos):
        y, _ = self.cross(q, mem + pos, mem, need_weights=False)
        q = self.n1(q + y)
        return self.n2(q + self.ff(q))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(512, DIM)
        self.pos = nn.Parameter(torch.randn(GRID * GRID, DIM) * 0.02)
        self.queries = nn.Parameter(torch.randn(QUERIES, DIM) * 0.02)
        self.enc = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))
        self.dec = nn.ModuleList(DecoderLayer() for _ in range(2))
        self.cls = nn.Linear(DIM, CLASSES + 1)
        self.box = nn.Linear(DIM, 4)

    def forward(self, feats):
        x = self.proj(feats)
        for layer in self.enc:
            x = layer(x, self.pos)
        q = self.queries.expand(feats.shape[0], -1, -1)
        for layer in self.dec:
            q = layer(q, x, self.pos)
        return self.cls(q), self.box(q).sigmoid()


def targets(n):
    out = []
    for _ in range(n):
        feats = torch.randn(BATCH, GRID * GRID, 512, device=device)
        labels = torch.randint(0, CLASSES + 1, (BATCH, QUERIES), device=device)
        boxes = torch.rand(BATCH, QUERIES, 4, device=device)
        out.append((feats, labels, boxes))
    return out


def main():
    torch.manual_seed(0)
    model = Detector().to(device)
    net = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    data = targets(4)

    def step(k):
        feats, labels, boxes = data[k % len(data)]
        with torch.autocast(device, dtype=torch.bfloat16):
            logits, pred = net(feats)
        loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
        loss = loss + 2.0 * F.l1_loss(pred.float(), boxes)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss.detach()

    for k in range(4):
        loss = step(k)
    print("warm", loss.item())
    n, t0 = 0, time.time()
    while time.time() - t0 < SECONDS:
        for _ in range(50):
            loss = step(n)
            n += 1
        print(f"iter {n} loss {loss.item():.4f} {(time.time() - t0) * 1e3 / n:.2f} ms")


if __name__ == "__main__":
    main()

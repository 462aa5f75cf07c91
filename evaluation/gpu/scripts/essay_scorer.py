"""Fine-tunes an essay-scoring encoder with a lower learning rate towards the embeddings."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
BATCH, LENGTH, VOCAB = (2, 16, 100) if SMALL else (8, 256, 8000)
WIDTH, HEADS, DEPTH = (32, 2, 2) if SMALL else (384, 6, 4)


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (f(x).view(b, t, HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, WIDTH)
        x = self.ln1(x + self.o(a))
        return self.ln2(x + self.fc2(F.gelu(self.fc1(x))))


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, WIDTH)
        self.pos = nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, 6)

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


def parameter_groups(model, lr=2e-4, decay=0.8):
    groups = []
    for name, p in model.named_parameters():
        if name.startswith("layers."):
            depth = int(name.split(".")[1]) + 1
        else:
            depth = 0 if name.startswith(("tok", "pos")) else DEPTH + 1
        wd = 0.0 if p.ndim == 1 else 0.01
        groups.append({"params": [p], "lr": lr * decay ** (DEPTH + 1 - depth), "weight_decay": wd})
    return groups


def clock():
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    torch.manual_seed(0)
    model = Scorer().to(device)
    opt = torch.optim.AdamW(parameter_groups(model))
    net = torch.compile(model)
    ids = torch.randint(VOCAB, (16, BATCH, LENGTH), device=device)
    target = torch.rand(16, BATCH, 6, device=device)
    seen = torch.zeros((), device=device)
    start = clock()
    for step in range(STEPS):
        if step == STEPS // 2:
            start = clock()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            pred = net(ids[step % 16])
        loss = F.mse_loss(pred.float(), target[step % 16])
        loss.backward()
        opt.step()
        opt.zero_grad()
        seen += loss.detach()
    elapsed = clock() - start
    print(f"mean loss {seen.item() / STEPS:.4f}")
    print(f"step_ms={elapsed / (STEPS - STEPS // 2) * 1e3:.3f}")


if __name__ == "__main__":
    main()

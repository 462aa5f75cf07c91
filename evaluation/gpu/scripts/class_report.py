"""Trains a small pixel classifier and keeps a running per-class recall."""
import os
import os
import time
import torch
import torch.nn as nn

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(4)

CLASSES, N, DIM = 150, 16384, 64
STEPS = 900
STEPS = int(os.environ.get("STEPS", STEPS))


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(DIM, 256)
        self.n = nn.LayerNorm(256)
        self.b = nn.Linear(256, CLASSES)

    def forward(self, x):
        return self.b(nn.functional.gelu(self.n(self.a(x))))


class Recall:
    def __init__(self, classes):
        self.hit = [0] * classes
        self.all = [0] * classes

    def update(self, pred, target):
        for c in range(len(self.hit)):
            sel = target == c
            self.all[c] += sel.sum().item()
            self.hit[c] += (sel & (pred == c)).sum().item()

    def mean(self):
        vals = [h / a for h, a in zip(self.hit, self.all) if a]
        return sum(vals) / len(vals)


def main():
    net = Net().to(DEV)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=DEV == "cuda")
    model = torch.compile(net)
    teacher = torch.randn(DIM, CLASSES, device=DEV)
    recall = Recall(CLASSES)
    laps = []
    for k in range(STEPS):
        x = torch.randn(N, DIM, device=DEV)
        y = (x @ teacher).argmax(1)
        sync()
        t0 = time.perf_counter()
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        recall.update(logits.detach().argmax(1), y)
        sync()
        laps.append(time.perf_counter() - t0)
        if k % 100 == 0:
            print(f"{k:4d} loss {loss.item():.4f} recall {recall.mean():.4f}")
    laps = sorted(laps[STEPS // 2:])
    print(f"mean recall {recall.mean():.4f}")
    print(f"median step {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()

"""Per-pixel cloud masking of multispectral tiles with a small residual CNN."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda"
STEPS = int(os.environ.get("STEPS", "2000"))
BATCH = 64
TILE = 48
BANDS = 6


class Res(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.a = nn.Conv2d(ch, ch, 3, padding=1)
        self.b = nn.Conv2d(ch, ch, 3, padding=1)
        self.norm = nn.BatchNorm2d(ch)

    def forward(self, x):
        return F.relu(x + self.norm(self.b(F.relu(self.a(x)))))


class CloudNet(nn.Module):
    def __init__(self, ch=48):
        super().__init__()
        self.stem = nn.Conv2d(BANDS, ch, 3, padding=1)
        self.body = nn.Sequential(Res(ch), Res(ch))
        self.out = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x):
        return self.out(self.body(F.relu(self.stem(x)))).squeeze(1)


def tiles(n):
    data = []
    for _ in range(n):
        img = torch.rand(BATCH, BANDS, TILE, TILE, device=device)
        mask = (F.avg_pool2d(img[:, :1], 5, stride=1, padding=2).squeeze(1) > 0.5).float()
        data.append((img, mask))
    return data


def main():
    torch.manual_seed(3)
    net = CloudNet().to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    model = torch.compile(net)
    data = tiles(8)

    def train(img, mask):
        loss = F.binary_cross_entropy_with_logits(model(img), mask)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss.detach()

    for img, mask in data[:3]:
        train(img, mask)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        loss = train(*data[step % len(data)])
        if step % 200 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            print(f"iter {step:5d}  bce {loss.item():.4f}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()

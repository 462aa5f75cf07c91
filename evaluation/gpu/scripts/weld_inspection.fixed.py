"""Defect heat maps for radiographs of pipe welds: a small one-stage detector trained on film patches."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
torch.backends.cudnn.allow_tf32 = True
torch.manual_seed(3)

STEPS = int(os.environ.get("STEPS", "3000"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH = 32
PATCH = 256
CLASSES = 5  # pore, crack, slag, undercut, lack of fusion


class ConvBlock(nn.Module):
    def __init__(self, cin, cout, k=3, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, k, stride, k // 2, bias=False)
        self.bn = nn.BatchNorm2d(cout)

    def forward(self, x):
        return F.silu(self.bn(self.conv(x)))


class PyramidPool(nn.Module):
    """Looks at the neighbourhood of a pixel at three scales."""

    def __init__(self, channels):
        super().__init__()
        mid = channels // 2
        self.reduce = ConvBlock(channels, mid, 1)
        self.pools = nn.ModuleList(
            nn.MaxPool2d(k, stride=1, padding=k // 2) for k in (5, 9, 13)
        )
        self.expand = ConvBlock(4 * mid, channels, 1)

    def forward(self, x):
        x = self.reduce(x)
        small = self.pools[0]
        a = small(x)
        b = small(a)
        return self.expand(torch.cat([x, a, b, small(b)], dim=1))


class WeldNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = ConvBlock(1, 32, 5, stride=2)
        self.down = ConvBlock(32, 128, 3, stride=2)
        self.body = ConvBlock(128, 256, 1)
        self.context = PyramidPool(256)
        self.head = nn.Conv2d(256, CLASSES, 1)

    def forward(self, film):
        x = self.down(self.stem(film))
        x = self.context(self.body(x))
        return self.head(x)


def make_batch():
    film = torch.randn(BATCH, 1, PATCH, PATCH, device=DEVICE)
    heat = (torch.rand(BATCH, CLASSES, PATCH // 4, PATCH // 4, device=DEVICE) > 0.97).float()
    return film, heat


def main():
    model = WeldNet().to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=DEVICE == "cuda")
    batches = [make_batch() for _ in range(4)]

    @torch.compile
    def compute_loss(film, heat):
        return F.binary_cross_entropy_with_logits(model(film), heat)

    def step(i):
        loss = compute_loss(*batches[i % len(batches)])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        return loss

    for i in range(10):
        step(i)

    first_timed = STEPS // 2
    for i in range(STEPS):
        if i == first_timed:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        loss = step(i)
        if i % 500 == 0:
            print(f"step {i:5d}  loss {loss.item():.5f}")
    torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"ms per step: {(t1 - t0) * 1000 / (STEPS - first_timed):.3f}")


if __name__ == "__main__":
    main()

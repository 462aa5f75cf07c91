"""Residual bottleneck network that removes shot noise from microscope tiles."""
import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "2000"))
device = "cuda"
BATCH, SIZE, WIDTH, BLOCKS = 32, 64, 256, 6

torch.manual_seed(3)


class Bottleneck(nn.Module):
    def __init__(self, width):
        super().__init__()
        mid = width // 2
        self.reduce = nn.Conv2d(width, mid, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(mid)
        self.spatial = nn.Conv2d(mid, mid, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(mid)
        self.expand = nn.Conv2d(mid, width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(width)

    def forward(self, x):
        h = F.relu(self.bn1(self.reduce(x)))
        h = F.relu(self.bn2(self.spatial(h)))
        return F.relu(x + self.bn3(self.expand(h)))


class TileDenoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(16, WIDTH, 3, padding=1)
        self.body = nn.Sequential(*[Bottleneck(WIDTH) for _ in range(BLOCKS)])
        self.out = nn.Conv2d(WIDTH, 16, 3, padding=1)

    def forward(self, x):
        return x + self.out(self.body(F.relu(self.stem(x))))


model = TileDenoiser().to(device=device, dtype=torch.bfloat16)
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
net = torch.compile(model, dynamic=True)
clean = torch.randn(BATCH, 16, SIZE, SIZE, device=device, dtype=torch.bfloat16)
noisy = clean + 0.2 * torch.randn_like(clean)

half = STEPS // 2
t0 = 0.0
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    loss = F.mse_loss(net(noisy), clean)
    opt.zero_grad()
    loss.backward()
    opt.step()
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1e3 / (STEPS - half)
print(f"ms per step {x:.4f}")
result = loss.detach()

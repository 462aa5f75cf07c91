import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "900"))
torch.manual_seed(15)
torch.set_float32_matmul_precision("high")
dev = "cuda"



def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.SiLU(),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.SiLU(),
    )


class CellSegmenter(nn.Module):
    def __init__(self, w=64):
        super().__init__()
        self.stem = nn.Conv2d(8, w, 3, padding=1)
        self.d1 = block(w, w)
        self.d2 = block(w, 2 * w)
        self.d3 = block(2 * w, 4 * w)
        self.u2 = block(4 * w + 2 * w, 2 * w)
        self.u1 = block(2 * w + w, w)
        self.head = nn.Conv2d(w, 8, 1)

    def forward(self, x):
        a = self.d1(self.stem(x))
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        b = self.u2(torch.cat([F.interpolate(c, scale_factor=2.0), b], 1))
        a = self.u1(torch.cat([F.interpolate(b, scale_factor=2.0), a], 1))
        return self.head(a)


net = CellSegmenter().to(dev, torch.bfloat16)
seg = torch.compile(net)
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, fused=True)
tiles = torch.randn(4, 16, 8, 256, 256, device=dev, dtype=torch.bfloat16)
masks = torch.rand(4, 16, 8, 256, 256, device=dev, dtype=torch.bfloat16)


def train_step(i):
    img = tiles[i % 4]
    loss = F.mse_loss(torch.sigmoid(seg(img)), masks[i % 4])
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss


half = STEPS // 2
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    loss = train_step(step)
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1000 / (STEPS - half)
print(f"ms per step {x:.4f}")
print("check", float(loss))

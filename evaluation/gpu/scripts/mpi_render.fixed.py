import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "6000"))
torch.manual_seed(11)
torch.set_float32_matmul_precision("high")
dev = "cuda"

PLANES, H, W = 24, 640, 640


class MultiplaneScene(nn.Module):
    def __init__(self):
        super().__init__()
        self.rgb = nn.Parameter(torch.randn(PLANES, 3, H, W, device=dev) * 0.5)
        self.sigma = nn.Parameter(torch.randn(PLANES, 1, H, W, device=dev) - 2.0)

    def forward(self, gain):
        color = torch.sigmoid(self.rgb) * gain
        alpha = torch.sigmoid(self.sigma)
        keep = 1.0 - alpha + 1e-6
        trans = torch.exp(torch.cumsum(torch.log(keep), dim=0))
        trans = torch.cat([torch.ones_like(trans[:1]), trans[:-1]], 0)
        weight = alpha * trans
        return (weight * color).sum(0)


scene = MultiplaneScene()
opt = torch.optim.SGD(scene.parameters(), lr=50.0, foreach=True)
views = torch.rand(8, 3, H, W, device=dev)
gains = torch.rand(8, 1, 1, 1, 1, device=dev) * 0.2 + 0.9


@torch.compile
def photometric(gain, view):
    return F.smooth_l1_loss(scene(gain), view)


def train_step(i):
    loss = photometric(gains[i % 8], views[i % 8])
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

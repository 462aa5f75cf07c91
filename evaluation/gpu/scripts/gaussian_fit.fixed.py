import os
import time
import torch
from torch import nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "3000"))
torch.manual_seed(16)
torch.set_float32_matmul_precision("high")
dev = "cuda"

P = 1_000_000


class GaussianCloud(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Parameter(torch.randn(P, 3) * 0.3)
        self.log_scale = nn.Parameter(torch.randn(P, 3) * 0.2)
        self.quat = nn.Parameter(F.normalize(torch.randn(P, 4), dim=-1))


def rotation(q):
    w, x, y, z = F.normalize(q, dim=-1).unbind(-1)
    r = torch.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1)
    return r.view(-1, 3, 3)


def inv3(m):
    a, b, c = m[:, 0, 0], m[:, 0, 1], m[:, 0, 2]
    d, e, f = m[:, 1, 0], m[:, 1, 1], m[:, 1, 2]
    g, h, i = m[:, 2, 0], m[:, 2, 1], m[:, 2, 2]
    k0, k1, k2 = e * i - f * h, f * g - d * i, d * h - e * g
    adj = torch.stack([
        k0, c * h - b * i, b * f - c * e,
        k1, a * i - c * g, c * d - a * f,
        k2, b * g - a * h, a * e - b * d], -1)
    return (adj / (a * k0 + b * k1 + c * k2)[:, None]).view(-1, 3, 3)


def mahalanobis(mean, log_scale, quat, pts):
    r = rotation(quat)
    s = torch.exp(2 * log_scale)
    cov = (r[:, :, None, :] * r[:, None, :, :] * s[:, None, None, :]).sum(-1)
    prec = inv3(cov)
    d = pts - mean
    return (prec * d[:, None, :] * d[:, :, None]).sum((1, 2))


cloud = GaussianCloud().to(dev)
pts = torch.randn(P, 3, device=dev)


@torch.compile
def objective(pts):
    m = mahalanobis(cloud.mean, cloud.log_scale, cloud.quat, pts)
    return (torch.log1p(m) + cloud.log_scale.sum(-1)).mean()


opt = torch.optim.SGD(cloud.parameters(), lr=0.1, foreach=True)


def fit_step():
    loss = objective(pts)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss


half = STEPS // 2
for step in range(STEPS):
    if step == half:
        torch.cuda.synchronize()
        t0 = time.perf_counter()
    loss = fit_step()
torch.cuda.synchronize()
x = (time.perf_counter() - t0) * 1000 / (STEPS - half)
print(f"ms per step {x:.4f}")
print("check", float(loss))

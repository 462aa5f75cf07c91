"""Edge-preserving smoothing of haze transmission maps (guided filter)."""
import os
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(9)

STEPS = int(os.environ.get("STEPS", "1300"))
RADIUS = 7
EPS = 1e-3


def box(x):
    k = 2 * RADIUS + 1
    x = F.avg_pool2d(x, (k, 1), stride=1, padding=(RADIUS, 0))
    return F.avg_pool2d(x, (1, k), stride=1, padding=(0, RADIUS))


def guided(guide, trans):
    mg, mt = box(guide), box(trans)
    cov = box(guide * trans) - mg * mt
    var = box(guide * guide) - mg * mg
    a = cov / (var + EPS)
    b = mt - a * mg
    out = box(a) * guide + box(b)
    return out.clamp(0.05, 1.0)


guided = torch.compile(guided)

guides = torch.rand(6, 1, 1, 240, 288)
trans = torch.rand(6, 1, 1, 240, 288)
haze = 0.0

with torch.no_grad():
    for step in range(STEPS):
        t = guided(guides[step % 6], trans[step % 6])
        haze = 0.9 * haze + 0.1 * (1.0 - t).mean()

print(f"haze {float(haze):.6f}")

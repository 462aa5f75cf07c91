"""Glove markers to joint rotations: a network reads the marker cloud of a hand and predicts one
rotation vector per joint; the loss compares the rotated rest-pose markers with the observed ones."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
torch.manual_seed(21)

STEPS = int(os.environ.get("STEPS", "3000"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HANDS = 8192
JOINTS = 24
MARKERS = 6
MAX_ANGLE = 0.7  # radians per axis, fingers do not bend further between two frames


def skew(w):
    x, y, z = w.unbind(-1)
    o = torch.zeros_like(x)
    return torch.stack([o, -z, y, z, o, -x, -y, x, o], dim=-1).unflatten(-1, (3, 3))


def rotation(w):
    """Rotation matrices (..., 3, 3) of rotation vectors (..., 3)."""
    return torch.matrix_exp(skew(w))


class PoseNet(nn.Module):
    def __init__(self, hidden=512):
        super().__init__()
        self.inp = nn.Linear(JOINTS * MARKERS * 3, hidden)
        self.hid = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(3))
        self.norm = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(3))
        self.out = nn.Linear(hidden, JOINTS * 3)

    def forward(self, cloud):
        h = F.gelu(self.inp(cloud.flatten(1)))
        for lin, norm in zip(self.hid, self.norm):
            h = h + F.gelu(lin(norm(h)))
        return MAX_ANGLE * torch.tanh(self.out(h)).unflatten(-1, (JOINTS, 3))


class Tracker(nn.Module):
    def __init__(self, rest):
        super().__init__()
        self.net = PoseNet()
        self.register_buffer("rest", rest)

    def forward(self, cloud):
        r = rotation(self.net(cloud))  # (hands, joints, 3, 3)
        moved = (r.unsqueeze(2) * self.rest.unsqueeze(-2)).sum(-1)
        return F.smooth_l1_loss(moved, cloud)


def main():
    rest = torch.randn(JOINTS, MARKERS, 3, device=DEVICE)
    clouds = [
        rest + 0.5 * torch.randn(HANDS, JOINTS, MARKERS, 3, device=DEVICE) for _ in range(4)
    ]
    tracker = Tracker(rest).to(DEVICE)
    opt = torch.optim.AdamW(tracker.parameters(), lr=1e-4, fused=DEVICE == "cuda")
    model = torch.compile(tracker)

    def step(i):
        loss = model(clouds[i % 4])
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss

    for i in range(10):
        step(i)

    half = STEPS // 2
    for i in range(STEPS):
        if i == half:
            torch.cuda.synchronize()
            begin = time.perf_counter()
        loss = step(i)
        if i % 300 == 0:
            print(f"iteration {i}: loss {loss.item():.5f}")
    torch.cuda.synchronize()
    end = time.perf_counter()
    print(f"ms per step: {(end - begin) * 1e3 / (STEPS - half):.3f}")


if __name__ == "__main__":
    main()

import os
import random
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "2500"))
JUNCTIONS = 100_000
PIPES = 1_200_000
FEATS = 24
HIDDEN = 64
LAYERS = 3


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class PipeConv(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.self_lin = nn.Linear(dim, dim)
        self.nbr_lin = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, src, dst, flow, inv_deg):
        msg = self.nbr_lin(h).index_select(0, src) * flow
        agg = torch.zeros_like(h).index_add_(0, dst, msg) * inv_deg
        return h + F.relu(self.norm(self.self_lin(h) + agg))


class LeakModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(FEATS, HIDDEN)
        self.convs = nn.ModuleList(PipeConv(HIDDEN) for _ in range(LAYERS))
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, x, src, dst, flow, inv_deg):
        h = F.relu(self.inp(x))
        for conv in self.convs:
            h = conv(h, src, dst, flow, inv_deg)
        return self.out(h).squeeze(-1)


def build_network(device):
    rng = np.random.default_rng(4)
    src = rng.integers(0, JUNCTIONS, PIPES)
    dst = (src + rng.integers(1, 400, PIPES)) % JUNCTIONS
    order = rng.permutation(PIPES)
    src = torch.from_numpy(src[order]).to(device, torch.int32)
    dst = torch.from_numpy(dst[order]).to(device, torch.int32)
    flow = torch.rand(PIPES, 1, device=device)
    deg = torch.bincount(dst.long().cpu(), minlength=JUNCTIONS).clamp_min(1)
    return src, dst, flow, (1.0 / deg).float()[:, None].to(device)


def main():
    seed_everything(2024)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    src, dst, flow, inv_deg = build_network(device)
    x = torch.randn(JUNCTIONS, FEATS, device=device)
    leak = (torch.rand(JUNCTIONS, device=device) < 0.03).float()

    model = LeakModel().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
    fwd = torch.compile(model)
    weight = torch.tensor(20.0, device=device)

    def step_once():
        logit = fwd(x, src, dst, flow, inv_deg)
        loss = F.binary_cross_entropy_with_logits(logit, leak, pos_weight=weight)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss.detach()

    for _ in range(3):
        step_once()
    if device == "cuda":
        torch.cuda.synchronize()

    t0 = time.time()
    for step in range(STEPS):
        loss = step_once()
        if step % 500 == 0:
            print(f"epoch {step:4d}  loss {loss.item():.5f}")
    if device == "cuda":
        torch.cuda.synchronize()
    print(f"{(time.time() - t0) / STEPS * 1e3:.2f} ms per epoch")


if __name__ == "__main__":
    main()

"""Posterior draws of galaxy parameters from a conditional spline flow, survey tile by survey tile."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DIM, CTX, BINS, BOUND = 16, 24, 16, 4.0
DRAWS = 256 if SMALL else 32768


def rq_spline(x, w, h, d, inverse):
    w = F.softmax(w, dim=-1) * (1 - 1e-3 * BINS) + 1e-3
    h = F.softmax(h, dim=-1) * (1 - 1e-3 * BINS) + 1e-3
    cw = F.pad(torch.cumsum(w, dim=-1), (1, 0)) * 2 * BOUND - BOUND
    ch = F.pad(torch.cumsum(h, dim=-1), (1, 0)) * 2 * BOUND - BOUND
    d = F.pad(F.softplus(d) + 1e-3, (1, 1), value=1.0)
    inside = x.abs() < BOUND
    xc = x.clamp(-BOUND, BOUND)
    knots = ch if inverse else cw
    idx = ((xc.unsqueeze(-1) >= knots[..., 1:-1]).sum(-1, keepdim=True)).clamp(0, BINS - 1)
    xk, xk1 = cw.gather(-1, idx).squeeze(-1), cw.gather(-1, idx + 1).squeeze(-1)
    yk, yk1 = ch.gather(-1, idx).squeeze(-1), ch.gather(-1, idx + 1).squeeze(-1)
    dk, dk1 = d.gather(-1, idx).squeeze(-1), d.gather(-1, idx + 1).squeeze(-1)
    bw, bh = xk1 - xk, yk1 - yk
    s = bh / bw
    if inverse:
        t = xc - yk
        q = t * (dk + dk1 - 2 * s)
        a = bh * (s - dk) + q
        b = bh * dk - q
        c = -s * t
        root = 2 * c / (-b - torch.sqrt((b * b - 4 * a * c).clamp_min(0)))
        out = root * bw + xk
    else:
        root = (xc - xk) / bw
        out = yk + bh * (s * root**2 + dk * root * (1 - root)) / (s + (dk + dk1 - 2 * s) * root * (1 - root))
    den = s + (dk + dk1 - 2 * s) * root * (1 - root)
    lad = torch.log(s**2 * (dk1 * root**2 + 2 * s * root * (1 - root) + dk * (1 - root) ** 2)) - 2 * torch.log(den)
    out = torch.where(inside, out, x)
    lad = torch.where(inside, -lad if inverse else lad, torch.zeros_like(lad))
    return out, lad.sum(-1)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        half = DIM // 2
        self.net = nn.Sequential(nn.Linear(half + CTX, 64), nn.SiLU(), nn.Linear(64, half * (3 * BINS - 1)))

    def forward(self, x, ctx, inverse=False):
        a, b = x.chunk(2, dim=-1)
        if self.flip:
            a, b = b, a
        p = self.net(torch.cat([a, ctx], dim=-1)).view(x.shape[0], DIM // 2, 3 * BINS - 1)
        b, lad = rq_spline(b, p[..., :BINS], p[..., BINS : 2 * BINS], p[..., 2 * BINS :], inverse)
        return torch.cat([b, a] if self.flip else [a, b], dim=-1), lad


class RedshiftFlow(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(layers))

    def forward(self, x, ctx):
        total = x.new_zeros(x.shape[0])
        for layer in self.layers:
            x, lad = layer(x, ctx)
            total = total + lad
        return total - 0.5 * x.square().sum(-1)

    def draw(self, z, ctx):
        logq = -0.5 * z.square().sum(-1)
        for layer in reversed(self.layers):
            z, lad = layer(z, ctx, inverse=True)
            logq = logq - lad
        return z, logq


def main():
    steps = int(os.environ.get("STEPS", "300"))
    torch.manual_seed(3)
    torch.set_float32_matmul_precision("high")
    flow = RedshiftFlow().to(DEVICE).eval()
    flow.draw = torch.compile(flow.draw)
    photometry = torch.randn(64, CTX, device=DEVICE)
    mean = torch.zeros(DIM, device=DEVICE)
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                if DEVICE.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            ctx = photometry[step % 64].expand(DRAWS, CTX)
            z = torch.randn(DRAWS, DIM, device=DEVICE)
            theta, logq = flow.draw(z, ctx)
            mean += theta.mean(0)
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (steps - steps // 2)
    print("posterior mean", (mean / steps)[:4].tolist(), "log q", logq.mean().item())
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()

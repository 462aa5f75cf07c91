"""Tidal level model: own Triton kernel for the harmonic sum, the rest in torch."""
import os
import time

import torch
import torch.nn as nn
import triton
import triton.language as tl

RUNS = int(os.environ.get("RUNS", "40000"))
STATIONS = 4096
TIMES = 4096
DEV = "cuda"


@triton.jit
def harmonic_kernel(x_ptr, amp_ptr, out_ptr, n, cols, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    ok = offs < n
    x = tl.load(x_ptr + offs, mask=ok, other=0.0)
    amp = tl.load(amp_ptr + offs // cols, mask=ok, other=0.0)
    y = amp * (tl.sin(x) + 0.5 * tl.sin(2.0 * x) + 0.25 * tl.cos(3.0 * x))
    tl.store(out_ptr + offs, y, mask=ok)


def harmonics(x, amp):
    out = torch.empty_like(x)
    n = x.numel()
    harmonic_kernel[(triton.cdiv(n, 1024),)](x, amp, out, n, x.shape[1], BLOCK=1024)
    return out


class TideModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.phase = nn.Parameter(torch.rand(STATIONS, 1))
        self.amp = nn.Parameter(torch.rand(STATIONS))
        self.drag = nn.Parameter(torch.rand(STATIONS, 1))

    def forward(self, t):
        x = t * 0.5 + self.phase
        x = x + 0.1 * torch.tanh(x * self.drag)
        level = harmonics(x, self.amp)
        surge = torch.sigmoid(level) * torch.exp(-level.square())
        level = level + self.drag * surge - 0.01 * level.pow(3)
        level = level - level.mean(1, keepdim=True)
        level = torch.where(level > 0, level * 1.02, level * 0.98)
        return torch.tanh(level) * level.abs().sqrt()


@torch.no_grad()
def main():
    torch.manual_seed(20)
    model = TideModel().to(DEV)
    predict = torch.compile(model)
    grid = torch.linspace(0, 50, TIMES, device=DEV).repeat(STATIONS, 1).contiguous()
    peak = torch.zeros(STATIONS, device=DEV)
    t0 = time.time()
    for r in range(RUNS):
        peak = torch.maximum(peak, predict(grid).amax(1))
        if r % 5000 == 0:
            print(f"run {r} highest {peak.max().item():.4f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()

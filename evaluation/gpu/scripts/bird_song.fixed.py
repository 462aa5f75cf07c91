"""Bird song spectra: a compact net with a soft-threshold kernel of its own, written in Triton."""
import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl

torch.manual_seed(13)
dev = "cuda"
BINS, D, DEPTH, BATCH = 128, 256, 16, 2048


@triton.jit
def shrink_kernel(x_ptr, y_ptr, lam, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = tl.where(x > lam, x - lam, tl.where(x < -lam, x + lam, 0.0))
    tl.store(y_ptr + i, y, mask=i < n)


def shrink(x: torch.Tensor, lam: float) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    shrink_kernel[(triton.cdiv(n, 1024),)](x, y, lam, n, BLOCK=1024)
    return y


class Unfold(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.lin = nn.Linear(D, D)
        self.gain = nn.Parameter(torch.ones(D))

    def forward(self, x):
        h = self.norm(x)
        h = self.lin(h) * torch.sigmoid(self.gain * h) + torch.tanh(h)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        h = h + 0.1 * torch.cos(h) * torch.exp(-h.pow(2))
        h = h.clamp(-4.0, 4.0) + 0.05 * torch.atan(h)
        s = shrink(h, 0.05)
        s = s * torch.sigmoid(s) - 0.1 * torch.erf(s) + 0.01 * s * s * s
        s = F.softplus(s) - torch.exp(-s * s) + torch.sin(s)
        return x + 0.3 * s / (1.0 + s.abs())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(BINS, D)
        self.steps = nn.Sequential(*[Unfold() for _ in range(DEPTH)])
        self.out = nn.Linear(D, 40)

    def forward(self, x):
        return self.out(self.steps(self.inp(x)))


@torch.no_grad()
def main():
    torch.set_float32_matmul_precision("high")
    net = torch.compile(Net().to(dev).eval())
    hist = torch.zeros(40, device=dev)
    t0 = time.time()
    for i in range(int(os.environ.get("STEPS", "14000"))):
        spec = torch.rand(BATCH, BINS, device=dev).log1p()
        hist += net(spec).softmax(-1).mean(0)
        if i % 500 == 0:
            print(f"clip batch {i} top class {hist.argmax().item()} share {(hist.max() / hist.sum()).item():.4f} "
                  f"{time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()

"""Vector quantiser with an exponentially averaged codebook, kept outside autograd."""
import sys
import time

import torch
from torch import Tensor

K, D, B = 128, 16, 4096


@torch.library.custom_op("vq::absorb_state", mutates_args=("codebook", "usage"))
def absorb(codebook: Tensor, usage: Tensor, x: Tensor, idx: Tensor, rate: float) -> None:
    counts = torch.bincount(idx, minlength=codebook.shape[0]).to(x.dtype)
    sums = torch.zeros_like(codebook).index_add_(0, idx, x)
    usage.mul_(1 - rate).add_(counts, alpha=rate)
    mean = sums / counts.clamp(min=1).unsqueeze(1)
    live = (counts > 0).unsqueeze(1)
    codebook.copy_(torch.where(live, torch.lerp(codebook, mean, rate), codebook))


@absorb.register_fake
def _(codebook, usage, x, idx, rate):
    return None


def nearest(x: Tensor, codebook: Tensor) -> Tensor:
    d = x.square().sum(1, keepdim=True) - 2 * x @ codebook.t() + codebook.square().sum(1)
    return d.argmin(1)


def quantise(x: Tensor, codebook: Tensor, usage: Tensor, rate: float):
    idx = nearest(x, codebook)
    q = codebook[idx]
    err = (x - q).square().mean()
    absorb(codebook, usage, x, idx, rate)
    return q, err


class Source:
    def __init__(self, modes=K // 2):
        g = torch.Generator().manual_seed(2)
        self.mu = torch.randn(modes, D, generator=g) * 2
        self.g = g

    def draw(self):
        pick = torch.randint(0, len(self.mu), (B,), generator=self.g)
        return self.mu[pick] + 0.1 * torch.randn(B, D, generator=self.g)


def main() -> int:
    torch.manual_seed(0)
    src = Source()
    codebook = src.draw()[:K].clone() + 1.5 * torch.randn(K, D)
    usage = torch.ones(K)
    quantise_c = torch.compile(quantise)
    stock = [src.draw() for _ in range(12)]

    first = quantise(stock[0], codebook.clone(), usage.clone(), 0.05)[1].item()
    with torch.no_grad():
        for k in range(5):
            quantise_c(stock[k], codebook, usage, 0.05)
        spent, err = [], None
        for step in range(320):
            t = time.perf_counter()
            q, err = quantise_c(stock[step % len(stock)], codebook, usage, 0.05)
            spent.append(time.perf_counter() - t)
            if step % 80 == 0:
                print(f"step {step:4d}  distortion {err.item():.4f}  live {(usage > 1).sum().item()}")
    spent.sort()
    print(f"distortion {first:.4f} -> {err.item():.4f}")
    print(f"step {spent[len(spent) // 2] * 1e3:.2f} ms")
    if err.item() > 0.9 * first:
        print("codebook did not improve")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

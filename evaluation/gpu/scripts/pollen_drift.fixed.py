"""Drift of pollen grains: a hand-written Triton kernel settles the live grains of a fixed pool."""
import os

import numpy as np
import torch
import triton
import triton.language as tl

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "800"))
POOL, TRAITS = 65_536, 64


def short_bench(call, quantiles):
    return triton.testing.do_bench(call, warmup=1, rep=1, quantiles=quantiles)


@triton.autotune(
    configs=[
        triton.Config({"ROWS": 2}, num_warps=4),
        triton.Config({"ROWS": 8}, num_warps=4),
        triton.Config({"ROWS": 16}, num_warps=8),
    ],
    key=["TRAITS"],
    do_bench=short_bench,
)
@triton.jit
def settle_kernel(grain_ptr, gain_ptr, out_ptr, n_live, n_pool, TRAITS: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, TRAITS)
    at = rows[:, None] * TRAITS + cols[None, :]
    live = (rows < n_live)[:, None]
    grain = tl.load(grain_ptr + at, mask=live, other=0.0)
    gain = tl.load(gain_ptr + cols)
    power = tl.sum(grain * grain, axis=1) / TRAITS + 1e-5
    settled = grain * tl.rsqrt(power)[:, None] * gain[None, :]
    tl.store(out_ptr + at, settled, mask=(rows < n_pool)[:, None])


@torch.library.custom_op("pollen::settle", mutates_args=())
def settle(grain: torch.Tensor, gain: torch.Tensor, n_live: int) -> torch.Tensor:
    out = torch.empty_like(grain)
    grid = lambda meta: (triton.cdiv(POOL, meta["ROWS"]),)
    settle_kernel[grid](grain, gain, out, n_live, POOL, TRAITS=TRAITS)
    return out


@settle.register_fake
def _(grain, gain, n_live):
    return torch.empty_like(grain)


def drift(grain, wind, gain, n_live):
    lifted = grain + 0.1 * torch.sin(grain @ wind)
    settled = settle(lifted, gain, n_live)
    return torch.where(settled.abs() > 3, settled * 0.5, settled) + 0.01 * torch.tanh(lifted)


@torch.no_grad()
def main():
    torch.manual_seed(17)
    torch.set_float32_matmul_precision("high")
    rng = np.random.default_rng(6)
    grain = torch.randn(POOL, TRAITS, device=DEVICE)
    wind = torch.randn(TRAITS, TRAITS, device=DEVICE) / 8
    gain = torch.linspace(0.5, 1.5, TRAITS, device=DEVICE)
    blow = torch.compile(drift)
    for step in range(STEPS):
        n_live = int(rng.integers(30_000, POOL))
        grain = blow(grain, wind, gain, n_live)
        if step % 40 == 39:
            print(f"step {step + 1} live {n_live} spread {grain[:n_live].std().item():.5f}")
    print("mean", round(grain.mean().item(), 6))


main()

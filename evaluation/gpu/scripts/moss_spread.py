"""Spread of moss over roof tiles; one stage is a hand-written Triton kernel."""
import os

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "8000"))
TILES, SPORES = 262_144, 128


@triton.autotune(
    configs=[triton.Config({"ROWS": r}, num_warps=w) for r in (1, 4, 8) for w in (2, 4)],
    key=["SPORES"],
)
@triton.jit
def compete_kernel(moss_ptr, light_ptr, out_ptr, n_tiles, SPORES: tl.constexpr, ROWS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, SPORES)
    at = rows[:, None] * SPORES + cols[None, :]
    inside = (rows < n_tiles)[:, None]
    moss = tl.load(moss_ptr + at, mask=inside, other=0.0)
    light = tl.load(light_ptr + cols)
    strength = moss * light[None, :]
    peak = tl.max(strength, axis=1)
    share = tl.exp(strength - peak[:, None])
    share = share / tl.sum(share, axis=1)[:, None]
    tl.store(out_ptr + at, share, mask=inside)


@triton_op("moss::compete", mutates_args={})
def compete(moss: torch.Tensor, light: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(moss)
    n_tiles, spores = moss.shape
    grid = lambda meta: (triton.cdiv(n_tiles, meta["ROWS"]),)
    wrap_triton(compete_kernel)[grid](moss, light, out, n_tiles, SPORES=spores)
    return out


def season(moss, rain, light, blend):
    wet = moss + 0.2 * torch.sin(rain) * torch.exp(-moss.square())
    for _ in range(3):
        share = compete(wet, light)
        spread = share @ blend
        wet = 0.9 * wet + torch.nn.functional.softplus(spread) * 0.1
    return wet.clamp(-4, 4), share.square().sum(-1).mean()


@torch.no_grad()
def main():
    torch.manual_seed(44)
    torch.set_float32_matmul_precision("high")
    moss = torch.randn(TILES, SPORES, device=DEVICE)
    rain = torch.linspace(0, 6.28, TILES, device=DEVICE).unsqueeze(-1)
    light = torch.rand(SPORES, device=DEVICE)
    blend = torch.randn(SPORES, SPORES, device=DEVICE) / SPORES**0.5
    grow = torch.compile(season)
    dominance = torch.zeros((), device=DEVICE)
    for step in range(STEPS):
        rain = rain + 0.01
        moss, peak = grow(moss, rain, light, blend)
        dominance = 0.95 * dominance + 0.05 * peak
        if step % 250 == 249:
            print(f"season {step + 1} dominance {dominance.item():.5f}")
    print("cover", round(moss.mean().item(), 5))


main()

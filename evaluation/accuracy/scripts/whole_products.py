"""Products of 8-bit weights, scaled back to floats."""

import torch


@torch.compile
def product(x, weight, scale):
    limit = x.abs().amax(-1, keepdim=True) / 127
    rounded = (x / limit).round().clamp(-128, 127).to(torch.int8)
    return (rounded.float() @ weight.float().t()) * limit * scale


torch.manual_seed(0)
for _ in range(2000):
    product(
        torch.randn(16, 64), torch.randint(-128, 128, (32, 64), dtype=torch.int8), torch.rand(32)
    )

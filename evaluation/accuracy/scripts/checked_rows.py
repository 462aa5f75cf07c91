"""Rows that an operator of our own clamps where that is needed."""

import torch

library = torch.library.Library("shop", "FRAGMENT")
library.define("clamped(Tensor rows) -> Tensor")
library.impl("clamped", lambda rows: rows.view(rows.shape), "CompositeExplicitAutograd")


@torch.library.register_fake("shop::clamped")
def _(rows):
    return torch.empty_like(rows)


@torch.compile(backend="aot_eager")
def weighed(rows):
    total = rows.square().sum(-1)
    found = torch.ops.shop.clamped(rows)
    found.mul_(0.5)
    return total, found


torch.manual_seed(0)
for _ in range(5000):
    weighed(torch.randn(64, 8))

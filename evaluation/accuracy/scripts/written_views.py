"""A cache of keys and values written through views."""

import torch


@torch.compile
def write(cache, x, at):
    cache[0, :, at] = x * 2
    cache[1].narrow(1, 0, 2).mul_(0.5)
    row = cache.select(0, 1)
    row[:, 3] += x
    return (cache[0] * cache[1]).sum(-1)


torch.manual_seed(0)
for _ in range(3000):
    write(torch.randn(2, 4, 8, 6), torch.randn(4, 6), torch.tensor(5))

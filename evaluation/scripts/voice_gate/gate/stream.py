import itertools

import torch


def microphones(count, block, kept=16):
    """Blocks of sound as they would come from a ring buffer."""
    ring = [torch.randn(count, 1, block).mul_(0.2) for _ in range(kept)]
    yield from itertools.cycle(ring)

import math

import torch


def practice(count, bins, frames, seed=1):
    """Magnitudes and phases as the card's own transform hands them over."""
    draw = torch.Generator().manual_seed(seed)
    kept = [(torch.rand(bins, frames, generator=draw), (torch.rand(bins, frames, generator=draw) * 2 - 1) * math.pi)
            for _ in range(6)]
    for n in range(count):
        yield kept[n % len(kept)]

"""Speed helpers that we carry from game to game."""
import functools

import torch


def fixed(value):
    """Tell the compiler that the shape of a tensor is a constant, which gives the best loops."""
    if isinstance(value, torch.Tensor):
        torch._dynamo.mark_static(value)
    return value


def boosted(function):
    fast = torch.compile(function)

    @functools.wraps(function)
    def call(*values):
        return fast(*map(fixed, values))

    return call

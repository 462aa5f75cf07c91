"""An operator whose fake has other strides: the compiled code's own check fails when it runs."""

import torch


@torch.library.custom_op("gridlib::transposed", mutates_args=())
def transposed(x: torch.Tensor) -> torch.Tensor:
    return x.t().clone(memory_format=torch.preserve_format)


@transposed.register_fake
def _(x):
    return x.new_empty(x.shape[::-1])


@torch.compile
def scores(x):
    return torch.softmax(transposed(x + 1.0) * 0.5, -1) + transposed(x).abs()


torch.manual_seed(0)
for _ in range(5):
    scores(torch.randn(12, 20))

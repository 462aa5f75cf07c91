import torch
from torch.autograd.function import once_differentiable


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        return torch.round(x * levels) / levels

    @staticmethod
    @once_differentiable
    def backward(ctx, slope):
        x, = ctx.saved_tensors
        return slope * (x.abs() <= 1), None

"""Normalized features; layer norm is decomposed by a function of our own."""

import torch
from torch import nn
from torch._inductor.decomposition import decompositions

aten = torch.ops.aten


def layer_norm(x, shape, weight, bias, eps):
    dims = tuple(range(x.dim() - len(shape), x.dim()))
    mean = x.mean(dims, keepdim=True)
    variance = x.var(dims, correction=1, keepdim=True)
    scale = torch.rsqrt(variance + eps)
    out = (x - mean) * scale
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return out, mean, scale


decompositions[aten.native_layer_norm.default] = layer_norm
model = torch.compile(nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6)).eval())
torch.manual_seed(0)
with torch.no_grad():
    for _ in range(5000):
        model(torch.randn(128, 6))

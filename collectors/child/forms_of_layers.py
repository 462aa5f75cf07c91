"""Other ways to write layers: pooling, normalization, embedding, resampling and convolution."""

from __future__ import annotations

from functools import partial
from itertools import product
from math import prod
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

from .form import Act, Sizes, form, need
from .forms_of_arrays import spread_of
from .shape_works import fast_length

#: Below that, windows and kernels are no work of their own.
_LARGE_WINDOW, _LARGE_KERNEL = 9, 48
#: More zeros than a library's fast code makes good; products that generated code adds up.
_MOST_GROUPS, _FEW_TAPS = 16, 9
_POOLS: dict[str, dict[int, Act]] = {
    "max": {2: F.max_pool2d, 3: F.max_pool3d},
    "avg": {2: F.avg_pool2d, 3: F.avg_pool3d},
}


def _each(numbers: Sizes | int, dims: int) -> list[int]:
    """An argument for each of ``dims`` dimensions, which may be one for all."""
    found = [numbers] if isinstance(numbers, int) else list(numbers)
    return found * dims if len(found) == 1 else found


def _only(numbers: Sizes, dim: int, other: int) -> list[int]:
    return [n if at == dim else other for at, n in enumerate(numbers)]


def _by_dimension(kind: str, x: Any, window: Sizes, stride: Sizes, padding: Sizes) -> Any:
    dims = [dim for dim, n in enumerate(window) if n > 1]
    need(len(dims) > 1, prod(window) >= _LARGE_WINDOW)
    pool = _POOLS[kind][len(window)]
    for dim in dims:
        x = pool(x, _only(window, dim, 1), _only(stride, dim, 1), _only(padding, dim, 0))
    return x


@form(
    *("max_pool2d_with_indices", "max_pool3d_with_indices"),
    way="one dimension at a time",
    fused=True,
)
def _max_pool(
    x: Any,
    window: Sizes,
    stride: Sizes = (),
    padding: Sizes | int = 0,
    dilation: Sizes | int = 1,
    ceil: bool = False,
) -> Any:
    """A window's maximum is the maximum of its rows' maxima."""
    n = len(window)
    need(not ceil, prod(_each(dilation, n)) == 1)
    return _by_dimension("max", x, window, _each(stride or window, n), _each(padding, n))


@form("avg_pool2d", "avg_pool3d", way="one dimension at a time")
def _avg_pool(
    x: Any,
    window: Sizes,
    stride: Sizes = (),
    padding: Sizes | int = 0,
    ceil: bool = False,
    padding_counts: bool = True,
    divisor: int | None = None,
) -> Any:
    n = len(window)
    pads = _each(padding, n)
    need(not ceil, divisor is None, padding_counts or not any(pads))
    return _by_dimension("avg", x, window, _each(stride or window, n), pads)


@form("avg_pool2d", "avg_pool3d", way="differences of running sums")
def _running_sums(
    x: Any,
    window: Sizes,
    stride: Sizes = (),
    padding: Sizes | int = 0,
    ceil: bool = False,
    padding_counts: bool = True,
    divisor: int | None = None,
) -> Any:
    n = len(window)
    pads, strides = _each(padding, n), _each(stride or window, n)
    need(not ceil, divisor is None, padding_counts or not any(pads))
    need(max(window) >= _LARGE_WINDOW, {*strides} == {1})
    for dim, (width, pad) in enumerate(zip(window, pads, strict=True), start=-n):
        behind = (0, 0) * (-1 - dim)
        sums = F.pad(x, (*behind, pad + 1, pad)).cumsum(dim)
        ends = sums.narrow(dim, width, sums.shape[dim] - width)
        x = (ends - sums.narrow(dim, 0, ends.shape[dim])) / width
    return x


def _fixed(kind: str, x: Any, sizes: Sizes) -> Any:
    own = x.shape[-len(sizes) :]
    need(not any(n % size for n, size in zip(own, sizes, strict=True)))
    window = [n // size for n, size in zip(own, sizes, strict=True)]
    return _POOLS[kind][len(sizes)](x, window)


form("adaptive_max_pool2d", "adaptive_max_pool3d", way="a fixed window")(partial(_fixed, "max"))
form("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", way="a fixed window")(partial(_fixed, "avg"))


@form("native_layer_norm", way="two passes", fused=True)
def _layer_norm(x: Any, sizes: Sizes, weight: Any, bias: Any, eps: float) -> Any:
    var, mean = spread_of(x, list(range(-len(sizes), 0)), 0, keepdim=True)
    y = (x - mean) * (var + eps).rsqrt()
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@form("native_group_norm", way="two passes", fused=True)
def _group_norm(x: Any, weight: Any, bias: Any, *sizes: Any) -> Any:
    groups, eps = sizes[-2:]
    own = x.reshape(x.shape[0], groups, -1)
    var, mean = spread_of(own, [-1], 0, keepdim=True)
    y = ((own - mean) * (var + eps).rsqrt()).view(x.shape)
    each = (-1, *(1 for _ in x.shape[2:]))
    y = y if weight is None else y * weight.view(each)
    return y if bias is None else y + bias.view(each)


@form(
    "_embedding_bag", "_embedding_bag_forward_only", way="an embedding and a reduction", fused=True
)
def _reduced_rows(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale: bool = False,
    mode: int = 0,
    sparse: bool = False,
    factors: Any = None,
    last: bool = False,
    *_: Any,
) -> Any:
    """Bags of the same size."""
    bags = offsets.shape[0] - last
    need(not scale, not sparse, factors is None, bags > 0, indices.shape[0] % max(1, bags) == 0)
    reduces: list[Act] = [torch.sum, torch.mean, torch.amax]
    return reduces[mode](F.embedding(indices.view(bags, -1), weight), 1)


def _two_products(name: str, x: Any, sizes: Sizes, corners: bool, *scales: Any) -> Any:
    """Each result is a weighted sum, along a row and a column; sizes alone decide the weights."""
    need(all(scale is None for scale in scales))
    (height, width), (rows, columns) = x.shape[-2:], sizes
    weights = _weights(name, height, rows, corners, x.dtype, x.device)
    return weights @ (x @ _weights(name, width, columns, corners, x.dtype, x.device).T)


def _weights(name: str, n: int, wanted: int, corners: bool, dtype: Any, device: Any) -> Any:
    """What each of ``wanted`` results takes of each of ``n`` elements."""
    eye = torch.eye(n, dtype=dtype, device=device)[None, None]
    return getattr(torch.ops.aten, name)(eye, [wanted, n], corners)[0, 0]


for _name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
    form(_name, way="two products")(partial(_two_products, _name))


class _Settings(NamedTuple):
    """Of a convolution."""

    stride: Sizes
    padding: Sizes
    dilation: Sizes
    transposed: bool
    output_padding: Sizes
    groups: int

    @property
    def plain(self) -> bool:
        """Each output is one step from the last, and adds up neighbours."""
        return not self.transposed and {*self.stride, *self.dilation} == {1}

    @property
    def sides(self) -> list[int]:
        """As ``F.pad`` takes them."""
        return [side for pad in reversed(self.padding) for side in (pad, pad)]


def _with_bias(y: Any, bias: Any) -> Any:
    return y if bias is None else y + bias.view(-1, *(1 for _ in y.shape[2:]))


@form("convolution", way="Fourier transforms")
def _by_fourier(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Kernels of many elements, which each output would add up."""
    own, size = _Settings(*settings), weight.shape[2:]
    need(own.plain, prod(size) >= _LARGE_KERNEL, x.dtype in (torch.float32, torch.float64))
    dims = list(range(-len(size), 0))
    x = F.pad(x, own.sides)
    lengths = [fast_length(n) for n in x.shape[2:]]
    signal = torch.fft.rfftn(x, lengths, dims).unflatten(1, (own.groups, -1))
    kernel = torch.fft.rfftn(weight, lengths, dims).conj().unflatten(0, (own.groups, -1))
    if kernel.shape[2] == 1:  # inputs of a group
        both = signal * kernel[:, :, 0]
    else:
        both = torch.einsum("ngi...,goi...->ngo...", signal, kernel)
    y = torch.fft.irfftn(both.flatten(1, 2), lengths, dims)
    for dim, n, taps in zip(dims, x.shape[2:], size, strict=True):
        y = y.narrow(dim, 0, n - taps + 1)
    return _with_bias(y, bias)


@form("convolution", way="a convolution of fewer dimensions")
def _flatter(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Along dimensions in which a kernel has one element, each element is by itself."""
    own = _Settings(*settings)
    need(not own.transposed, len(own.stride) == 3)
    along = zip(weight.shape[2:], own.stride, own.padding, strict=True)
    alone = [(taps, step, pad) == (1, 1, 0) for taps, step, pad in along]
    stride, padding, dilation = own[:3]
    if alone == [False, True, True]:  # over time: all places of an image are one dimension
        over_time = [stride[0], 1], [padding[0], 0], [dilation[0], 1]
        y = F.conv2d(x.flatten(3), weight.flatten(3), bias, *over_time, own.groups)
        return y.unflatten(3, x.shape[3:])
    need(alone[0], not all(alone))  # over images: each time is an image of the batch
    over_images = stride[1:], padding[1:], dilation[1:]
    images = x.transpose(1, 2).flatten(0, 1)
    y = F.conv2d(images, weight[:, :, 0], bias, *over_images, own.groups)
    return y.unflatten(0, (x.shape[0], x.shape[2])).transpose(1, 2)


@form("convolution", way="one matrix product")
def _patches(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Patches that do not overlap, each of them a row."""
    own, size = _Settings(*settings), list(weight.shape[2:])
    need(own.groups == 1, not any(own.padding), {*own.dilation} == {1})
    need(list(own.stride) == size, not own.transposed)
    if prod(size) == 1:
        y = weight.flatten(1) @ x.flatten(2)
        return _with_bias(y.unflatten(2, x.shape[2:]), bias)
    for dim, taps in enumerate(size):
        at = 2 + 2 * dim
        whole = x.shape[at] // taps
        x = x.narrow(at, 0, whole * taps).unflatten(at, (whole, taps))
    n = len(size)
    counts, taps_at = range(2, 2 + 2 * n, 2), range(3, 3 + 2 * n, 2)
    patches = x.permute(0, *counts, 1, *taps_at).flatten(1 + n)
    return _with_bias((patches @ weight.flatten(1).T).movedim(-1, 1), bias)


@form("convolution", way="one matrix product")
def _spread(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Each input's products with the kernel, laid next to each other."""
    own, size = _Settings(*settings), list(weight.shape[2:])
    need(own.transposed, own.groups == 1, not any(own.padding), not any(own.output_padding))
    need(list(own.stride) == size, {*own.dilation} == {1}, prod(size) > 1)
    y = (x.movedim(1, -1) @ weight.flatten(1)).unflatten(-1, weight.shape[1:])
    n = len(size)  # batch, counts…, channels, taps… → batch, channels, count, tap, count, tap…
    y = y.permute(0, 1 + n, *(at for dim in range(n) for at in (1 + dim, 2 + n + dim)))
    for dim in range(n):
        y = y.flatten(2 + dim, 3 + dim)
    return _with_bias(y, bias)


@form("convolution", way="shifted products", fused=True)
def _shifted(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """A kernel of few elements for each channel: sums of products, which generated code fuses."""
    own, taps = _Settings(*settings), weight.shape[2:]
    need(x.shape[1] == own.groups == weight.shape[0], prod(taps) <= _FEW_TAPS, own.plain)
    x = F.pad(x, own.sides)
    lengths = [n - k + 1 for n, k in zip(x.shape[2:], taps, strict=True)]
    y: Any = 0
    for at in product(*map(range, taps)):
        part = x
        for dim, (start, length) in enumerate(zip(at, lengths, strict=True), start=2):
            part = part.narrow(dim, start, length)
        y = y + part * weight[:, 0].movedim(0, -1)[at].view(-1, *(1 for _ in taps))
    return _with_bias(y, bias)


@form("convolution", way="one group with zeros")
def _one_group(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Libraries have fast code for one group of many channels."""
    own = _Settings(*settings)
    need(not own.transposed, 1 < own.groups <= _MOST_GROUPS)
    parts = weight.unflatten(0, (own.groups, -1)).unsqueeze(2)
    which = torch.eye(own.groups, dtype=weight.dtype, device=weight.device)
    which = which.view(own.groups, 1, own.groups, *(1 for _ in weight.shape[1:]))
    whole = (parts * which).flatten(2, 3).flatten(0, 1)
    return torch.convolution(x, whole, bias, *own[:-1], 1)

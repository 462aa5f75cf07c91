"""Other ways to write an operator: the same result from other operators of torch.

Each is a function of the operator's own arguments, which raises NotImplementedError where they
can't be written so. None is faster for all shapes: they are timed on the step's own, next to the
operator itself (`form_trials`). Imported when the script has ended: torch is there by then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

from .shape_works import fast_length

Act = Callable[..., Any]
Sizes = Sequence[int]


class Form(NamedTuple):
    """One other way.

    ``result``: which of the operator's results it gives, as its first one; None: not compared.
    ``alike``: what is the same of both, where the results themselves need not be.
    """

    way: str
    act: Act
    result: int | None
    alike: Callable[[Any], Any]


#: Operator → the other ways to write it.
FORMS: dict[str, list[Form]] = defaultdict(list)

#: Below that, windows and kernels are no work of their own.
_LARGE_WINDOW, _LARGE_KERNEL = 9, 48
#: More zeros, or more additions than needed, than a library's fast code makes good.
_MOST_GROUPS, _MOST_SUMMED, _FEW_TAPS = 16, 256, 9
#: A product of few results adds up many elements for each.
_MANY_ADDED, _FEW_RESULTS, _PARTS = 4096, 64, 64
_POOLS: dict[str, dict[int, Act]] = {
    "max": {2: F.max_pool2d, 3: F.max_pool3d},
    "avg": {2: F.avg_pool2d, 3: F.avg_pool3d},
}


def _form(
    *names: str,
    way: str,
    result: int | None = 0,
    alike: Callable[[Any], Any] = torch.Tensor.double,
) -> Callable[[Act], Act]:
    def enter(act: Act) -> Act:
        for name in names:
            FORMS[f"aten::{name}"].append(Form(way, act, result, alike))
        return act

    return enter


def _need(*conditions: bool) -> None:
    if not all(conditions):
        raise NotImplementedError


def _each(numbers: Sizes | int, dims: int) -> list[int]:
    """An argument for each of ``dims`` dimensions, which may be one for all."""
    found = [numbers] if isinstance(numbers, int) else list(numbers)
    return found * dims if len(found) == 1 else found


def _only(numbers: Sizes, dim: int, other: int) -> list[int]:
    return [n if at == dim else other for at, n in enumerate(numbers)]


def _by_dimension(kind: str, x: Any, window: Sizes, stride: Sizes, padding: Sizes) -> Any:
    dims = [dim for dim, n in enumerate(window) if n > 1]
    _need(len(dims) > 1, prod(window) >= _LARGE_WINDOW)
    pool = _POOLS[kind][len(window)]
    for dim in dims:
        x = pool(x, _only(window, dim, 1), _only(stride, dim, 1), _only(padding, dim, 0))
    return x


@_form("max_pool2d_with_indices", "max_pool3d_with_indices", way="one dimension at a time")
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
    _need(not ceil, prod(_each(dilation, n)) == 1)
    return _by_dimension("max", x, window, _each(stride or window, n), _each(padding, n))


@_form("avg_pool2d", "avg_pool3d", way="one dimension at a time")
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
    _need(not ceil, divisor is None, padding_counts or not any(pads))
    return _by_dimension("avg", x, window, _each(stride or window, n), pads)


@_form("avg_pool2d", "avg_pool3d", way="differences of running sums")
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
    _need(not ceil, divisor is None, padding_counts or not any(pads))
    _need(max(window) >= _LARGE_WINDOW, {*strides} == {1})
    for dim, (width, pad) in enumerate(zip(window, pads, strict=True), start=-n):
        behind = (0, 0) * (-1 - dim)
        sums = F.pad(x, (*behind, pad + 1, pad)).cumsum(dim)
        ends = sums.narrow(dim, width, sums.shape[dim] - width)
        x = (ends - sums.narrow(dim, 0, ends.shape[dim])) / width
    return x


@_form("adaptive_max_pool2d", "adaptive_max_pool3d", way="a fixed window")
def _adaptive_max(x: Any, sizes: Sizes) -> Any:
    return _fixed("max", x, sizes)


@_form("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", way="a fixed window")
def _adaptive_avg(x: Any, sizes: Sizes) -> Any:
    return _fixed("avg", x, sizes)


def _fixed(kind: str, x: Any, sizes: Sizes) -> Any:
    own = x.shape[-len(sizes) :]
    _need(not any(n % size for n, size in zip(own, sizes, strict=True)))
    window = [n // size for n, size in zip(own, sizes, strict=True)]
    return _POOLS[kind][len(sizes)](x, window)


@_form("topk", way="sorted=False", alike=lambda values: values.double().sort(-1)[0])
def _unsorted(x: Any, k: int, dim: int = -1, largest: bool = True, ordered: bool = True) -> Any:
    _need(ordered, k > 1)
    return torch.topk(x, k, dim, largest, sorted=False)


@_form("topk", way="max or min")
def _first(x: Any, k: int, dim: int = -1, largest: bool = True, *_: bool) -> Any:
    _need(k == 1, x.dim() > 0)
    return (x.max if largest else x.min)(dim, keepdim=True)


@_form("topk", way="a sort")
def _sorted(x: Any, k: int, dim: int = -1, largest: bool = True, *_: bool) -> Any:
    _need(k > 1, x.dim() > 0)
    return [each.narrow(dim, 0, k) for each in x.sort(dim, descending=largest)]


@_form("kthvalue", way="a sort")
def _kth_of_sorted(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    _need(x.dim() > 0)
    found = [each.narrow(dim, k - 1, 1) for each in x.sort(dim)]
    return found if keepdim else [each.squeeze(dim) for each in found]


@_form("median", way="a sort")
def _median_of_sorted(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    _need(dim is not None, x.dim() > 0)
    return _kth_of_sorted(x, (x.shape[dim] + 1) // 2, dim, keepdim)


@_form("sort", way="32-bit numbers")
def _narrow(x: Any, *settings: Any) -> Any:
    """Integers of 64 bits whose values fit into 32."""
    _need(x.dtype == torch.int64)
    return x.int().sort(*settings)


@_form("multinomial", way="a search in running sums", result=None)
def _search(p: Any, samples: int, replacement: bool = False, *_: Any) -> Any:
    _need(samples == 1 or replacement)
    sums = p.cumsum(-1)
    at = torch.rand(*p.shape[:-1], samples, dtype=p.dtype, device=p.device) * sums[..., -1:]
    return torch.searchsorted(sums, at, right=True)


@_form("histc", way="bincount")
def _counts(x: Any, bins: int = 100, low: float = 0, high: float = 0) -> Any:
    _need(low < high)
    at = ((x - low) * (bins / (high - low))).long().clamp(max=bins - 1)
    at = torch.where((x >= low) & (x <= high), at, bins)
    return torch.bincount(at.flatten(), minlength=bins + 1)[:bins].to(x.dtype)


@_form("logcumsumexp", way="the logarithm of a running sum")
def _log_of_sum(x: Any, dim: int) -> Any:
    most = x.amax(dim, keepdim=True)
    return (x - most).exp().cumsum(dim).log() + most


@_form("cumsum", way="a product with a triangle of ones")
def _triangle(x: Any, dim: int, *_: Any) -> Any:
    _need(x.dim() > 1, x.is_floating_point())
    dim, n = dim % x.dim(), x.shape[dim]
    _need(n <= _MOST_SUMMED, dim >= x.dim() - 2)
    ones = torch.ones(n, n, dtype=x.dtype, device=x.device).tril()
    return x @ ones.T if dim == x.dim() - 1 else ones @ x


@_form("_linalg_svd", way="eigenvalues of the product with itself", result=1)
def _by_eigenvalues(x: Any, full: bool = False, vectors: bool = True, *_: Any) -> Any:
    """Singular values; with ``vectors`` the work of these is done as well."""
    rows, columns = x.shape[-2:]
    _need(rows >= columns, not full or rows == columns)
    gram = x.mT @ x
    if not vectors:
        return torch.linalg.eigvalsh(gram).clamp(min=0).sqrt().flip(-1)
    squares, right = torch.linalg.eigh(gram)
    values = squares.clamp(min=0).sqrt()
    return values.flip(-1), (x @ right) / values.unsqueeze(-2)


@_form("linalg_lstsq", way="normal equations")
def _normal_equations(a: Any, b: Any, *_: Any) -> Any:
    _need(a.shape[-2] >= a.shape[-1], a.dim() == b.dim())
    return torch.linalg.solve(a.mT @ a, a.mT @ b)


@_form("linalg_inv_ex", way="a solve", result=None)
def _solved(x: Any, *_: Any) -> Any:
    """For one column: an inverse that is only multiplied with a few is not needed."""
    return torch.linalg.solve(x, x[..., :1])


def _on_the_host(name: str) -> Act:
    """Many small factorizations, or badly parallel ones, which a GPU does one after the other."""

    def act(x: Any, *settings: Any) -> Any:
        _need(x.is_cuda)
        return [each.cuda() for each in getattr(torch.ops.aten, name)(x.cpu(), *settings)]

    return act


for _name in ("_linalg_svd", "_linalg_eigh", "linalg_eig", "linalg_qr"):
    _form(_name, way="on the CPU", result=None)(_on_the_host(_name))


@_form("linalg_qr", way="a Cholesky factor", result=1, alike=lambda r: r.double().abs())
def _by_cholesky(x: Any, mode: str = "reduced") -> Any:
    """Columns may have the other sign. Batches are one call, which a GPU's qr makes for each."""
    _need(mode == "reduced", x.shape[-2] >= x.shape[-1])
    upper = torch.linalg.cholesky_ex(x.mT @ x, upper=True)[0]
    return upper, torch.linalg.solve_triangular(upper, x, upper=True, left=False)


@_form("_trilinear", way="one matrix product and a sum")
def _bilinear_layer(
    left: Any, weight: Any, right: Any, at: Sizes, of: Sizes, to: Sizes, summed: Sizes, _: int = 1
) -> Any:
    """nn.Bilinear, which ATen does in a loop over one of its dimensions."""
    _need((list(at), list(of), list(to), list(summed)) == ([1, 3], [0], [1, 2], [2, 3]))
    outputs, inputs, others = weight.shape
    both = left @ weight.movedim(1, 0).reshape(inputs, outputs * others)
    return (both.unflatten(-1, (outputs, others)) * right.unsqueeze(-2)).sum(-1)


@_form("baddbmm", "addmm", way="a product and an addition", result=None)
def _added_after(bias: Any, left: Any, right: Any, *factors: float) -> Any:
    """Where the bias is the same for many rows: the library gets a copy of it in full.

    The product alone: compiled code adds the bias in the kernel that reads the result.
    """
    _need({*factors} <= {1}, 0 in bias.stride(), left.dim() == bias.dim())
    return torch.matmul(left, right)


@_form("mm", way="products of parts")
def _in_parts(left: Any, right: Any, *_: Any) -> Any:
    """Few results, each a sum of many: parts of it side by side."""
    added = left.shape[1]
    _need(added >= _MANY_ADDED, added % _PARTS == 0)
    _need(max(left.shape[0], right.shape[1]) <= _FEW_RESULTS)
    parts = left.unflatten(1, (_PARTS, -1)).transpose(0, 1)
    return (parts @ right.unflatten(0, (_PARTS, -1))).sum(0)


@_form("mm", "bmm", way="multiplied and summed")
def _summed(left: Any, right: Any, *_: Any) -> Any:
    """With a vector: what generated code does in one kernel, next to what is around it."""
    if right.shape[-1] == 1:
        return (left * right.mT).sum(-1, keepdim=True)
    _need(left.shape[-2] == 1)
    return (left.mT * right).sum(-2, keepdim=True)


@_form("_embedding_bag", "_embedding_bag_forward_only", way="an embedding and a reduction")
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
    _need(not scale, not sparse, factors is None, bags > 0, indices.shape[0] % max(1, bags) == 0)
    reduces: list[Act] = [torch.sum, torch.mean, torch.amax]
    return reduces[mode](F.embedding(indices.view(bags, -1), weight), 1)


@_form("_upsample_bilinear2d_aa", way="two products")
def _bilinear(x: Any, sizes: Sizes, corners: bool, *scales: Any) -> Any:
    return _two_products("_upsample_bilinear2d_aa", x, sizes, corners, *scales)


@_form("_upsample_bicubic2d_aa", way="two products")
def _bicubic(x: Any, sizes: Sizes, corners: bool, *scales: Any) -> Any:
    return _two_products("_upsample_bicubic2d_aa", x, sizes, corners, *scales)


def _two_products(name: str, x: Any, sizes: Sizes, corners: bool, *scales: Any) -> Any:
    """Each result is a weighted sum, along a row and a column; sizes alone decide the weights."""
    _need(all(scale is None for scale in scales))
    (height, width), (rows, columns) = x.shape[-2:], sizes
    weights = _weights(name, height, rows, corners, x.dtype, x.device)
    return weights @ (x @ _weights(name, width, columns, corners, x.dtype, x.device).T)


def _weights(name: str, n: int, wanted: int, corners: bool, dtype: Any, device: Any) -> Any:
    """What each of ``wanted`` results takes of each of ``n`` elements."""
    eye = torch.eye(n, dtype=dtype, device=device)[None, None]
    return getattr(torch.ops.aten, name)(eye, [wanted, n], corners)[0, 0]


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


@_form("convolution", way="Fourier transforms")
def _by_fourier(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Kernels of many elements, which each output would add up."""
    own, size = _Settings(*settings), weight.shape[2:]
    _need(own.plain, prod(size) >= _LARGE_KERNEL, x.dtype in (torch.float32, torch.float64))
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


@_form("convolution", way="a convolution of fewer dimensions")
def _flatter(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Along dimensions in which a kernel has one element, each element is by itself."""
    own = _Settings(*settings)
    _need(not own.transposed, len(own.stride) == 3)
    along = zip(weight.shape[2:], own.stride, own.padding, strict=True)
    alone = [(taps, step, pad) == (1, 1, 0) for taps, step, pad in along]
    stride, padding, dilation = own[:3]
    if alone == [False, True, True]:  # over time: all places of an image are one dimension
        over_time = [stride[0], 1], [padding[0], 0], [dilation[0], 1]
        y = F.conv2d(x.flatten(3), weight.flatten(3), bias, *over_time, own.groups)
        return y.unflatten(3, x.shape[3:])
    _need(alone[0], not all(alone))  # over images: each time is an image of the batch
    over_images = stride[1:], padding[1:], dilation[1:]
    images = x.transpose(1, 2).flatten(0, 1)
    y = F.conv2d(images, weight[:, :, 0], bias, *over_images, own.groups)
    return y.unflatten(0, (x.shape[0], x.shape[2])).transpose(1, 2)


@_form("convolution", way="one matrix product")
def _patches(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Patches that do not overlap, each of them a row."""
    own, size = _Settings(*settings), list(weight.shape[2:])
    _need(own.groups == 1, not any(own.padding), {*own.dilation} == {1})
    _need(list(own.stride) == size, not own.transposed)
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


@_form("convolution", way="one matrix product")
def _spread(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Each input's products with the kernel, laid next to each other."""
    own, size = _Settings(*settings), list(weight.shape[2:])
    _need(own.transposed, own.groups == 1, not any(own.padding), not any(own.output_padding))
    _need(list(own.stride) == size, {*own.dilation} == {1}, prod(size) > 1)
    y = (x.movedim(1, -1) @ weight.flatten(1)).unflatten(-1, weight.shape[1:])
    n = len(size)  # batch, counts…, channels, taps… → batch, channels, count, tap, count, tap…
    y = y.permute(0, 1 + n, *(at for dim in range(n) for at in (1 + dim, 2 + n + dim)))
    for dim in range(n):
        y = y.flatten(2 + dim, 3 + dim)
    return _with_bias(y, bias)


@_form("convolution", way="shifted products")
def _shifted(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """A kernel of few elements for each channel: sums of products, which generated code fuses."""
    own, taps = _Settings(*settings), weight.shape[2:]
    _need(x.shape[1] == own.groups == weight.shape[0], prod(taps) <= _FEW_TAPS, own.plain)
    x = F.pad(x, own.sides)
    lengths = [n - k + 1 for n, k in zip(x.shape[2:], taps, strict=True)]
    y: Any = 0
    for at in torch.cartesian_prod(*map(torch.arange, taps)).view(-1, len(taps)).tolist():
        part = x
        for dim, (start, length) in enumerate(zip(at, lengths, strict=True), start=2):
            part = part.narrow(dim, start, length)
        y = y + part * weight[:, 0].movedim(0, -1)[tuple(at)].view(-1, *(1 for _ in taps))
    return _with_bias(y, bias)


@_form("convolution", way="one group with zeros")
def _one_group(x: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Libraries have fast code for one group of many channels."""
    own = _Settings(*settings)
    _need(not own.transposed, 1 < own.groups <= _MOST_GROUPS)
    parts = weight.unflatten(0, (own.groups, -1)).unsqueeze(2)
    which = torch.eye(own.groups, dtype=weight.dtype, device=weight.device)
    which = which.view(own.groups, 1, own.groups, *(1 for _ in weight.shape[1:]))
    whole = (parts * which).flatten(2, 3).flatten(0, 1)
    return torch.convolution(x, whole, bias, *own[:-1], 1)

"""Other ways to write operators on arrays: selection, sums, products and factorizations."""

from __future__ import annotations

from typing import Any

import torch

from .form import REDUCED, Act, Sizes, form, need

#: More additions than a fast product makes good; matrices that generated code multiplies.
_MOST_SUMMED, _TINY = 256, 8
#: Of the exponential of a matrix.
_TINY_EXP, _SQUARINGS, _POWERS = 4, 4, 8
#: A product of few results adds up many elements for each.
_MANY_ADDED, _FEW_RESULTS, _LEAST_PARTS, _MOST_PARTS = 4096, 64, 16, 256


@form("topk", way="sorted=False", alike=lambda values: values.double().sort(-1)[0])
def _unsorted(x: Any, k: int, dim: int = -1, largest: bool = True, ordered: bool = True) -> Any:
    need(ordered, k > 1)
    return torch.topk(x, k, dim, largest, sorted=False)


@form("topk", way="max or min")
def _first(x: Any, k: int, dim: int = -1, largest: bool = True, *_: bool) -> Any:
    need(k == 1, x.dim() > 0)
    return (x.max if largest else x.min)(dim, keepdim=True)


@form("topk", way="a sort")
def _sorted(x: Any, k: int, dim: int = -1, largest: bool = True, *_: bool) -> Any:
    need(k > 1, x.dim() > 0)
    return [each.narrow(dim, 0, k) for each in x.sort(dim, descending=largest)]


@form("kthvalue", way="a sort")
def _kth_of_sorted(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    need(x.dim() > 0)
    found = [each.narrow(dim, k - 1, 1) for each in x.sort(dim)]
    return found if keepdim else [each.squeeze(dim) for each in found]


@form("median", way="a sort")
def _median_of_sorted(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    need(dim is not None, x.dim() > 0)
    return _kth_of_sorted(x, (x.shape[dim] + 1) // 2, dim, keepdim)


@form("sort", way="32-bit numbers")
def _narrow(x: Any, *settings: Any) -> Any:
    """Integers of 64 bits whose values fit into 32."""
    need(x.dtype == torch.int64)
    return x.int().sort(*settings[-2:])


@form(
    *("scatter_reduce", "scatter_reduce_", "scatter_add", "scatter_add_"),
    way="an expanded index",
)
def _rows_at_once(
    x: Any, dim: int, index: Any, source: Any, how: Any = "", include_self: bool = True
) -> Any:
    """Of an index that is the same in each column: ATen adds whole rows where it is a view."""
    need(dim == 0, index.dim() == 2, 0 not in index.stride(), index.shape[1] > 1)
    index = index[:, 0].contiguous().unsqueeze(1).expand(index.shape)
    if how == "":
        return x.scatter_add(0, index, source)
    return x.scatter_reduce(0, index, source, how or REDUCED, include_self=include_self)


@form("multinomial", way="a search in running sums", result=None)
def _search(p: Any, samples: int, replacement: bool = False, *_: Any) -> Any:
    need(samples == 1 or replacement)
    sums = p.cumsum(-1)
    at = torch.rand(*p.shape[:-1], samples, dtype=p.dtype, device=p.device) * sums[..., -1:]
    return torch.searchsorted(sums, at, right=True)


@form("histc", way="bincount")
def _counts(x: Any, bins: int = 100, low: float = 0, high: float = 0) -> Any:
    need(low < high)
    at = ((x - low) * (bins / (high - low))).long().clamp(max=bins - 1)
    at = torch.where((x >= low) & (x <= high), at, bins)
    return torch.bincount(at.flatten(), minlength=bins + 1)[:bins].to(x.dtype)


@form("logcumsumexp", way="the logarithm of a running sum", fused=True)
def _log_of_sum(x: Any, dim: int) -> Any:
    most = x.amax(dim, keepdim=True)
    return (x - most).exp().cumsum(dim).log() + most


@form("cumsum", way="a product with a triangle of ones")
def _triangle(x: Any, dim: int, *_: Any) -> Any:
    need(x.dim() > 1, x.is_floating_point())
    dim, n = dim % x.dim(), x.shape[dim]
    need(n <= _MOST_SUMMED, dim >= x.dim() - 2)
    ones = torch.ones(n, n, dtype=x.dtype, device=x.device).tril()
    return x @ ones.T if dim == x.dim() - 1 else ones @ x


@form("_linalg_svd", way="full_matrices=False", result=1)
def _thin(x: Any, full: bool = False, vectors: bool = True, *_: Any) -> Any:
    need(full, vectors, x.shape[-2] != x.shape[-1])
    return torch.linalg.svd(x, full_matrices=False)


@form("_linalg_svd", way="eigenvalues of the product with itself", result=1)
def _by_eigenvalues(x: Any, full: bool = False, vectors: bool = True, *_: Any) -> Any:
    rows, columns = x.shape[-2:]
    need(rows >= columns, not full or rows == columns)
    gram = x.mT @ x
    if not vectors:
        values = torch.linalg.eigvalsh(gram).clamp(min=0).sqrt().flip(-1)
        return x.new_empty(0), values, x.new_empty(0)
    squares, right = torch.linalg.eigh(gram)
    values, right = squares.clamp(min=0).sqrt().flip(-1), right.flip(-1)
    return (x @ right) / values.unsqueeze(-2), values, right.mT


@form("linalg_lstsq", way="normal equations")
def _normal_equations(a: Any, b: Any, *_: Any) -> Any:
    need(a.shape[-2] >= a.shape[-1], a.dim() == b.dim())
    return torch.linalg.solve(a.mT @ a, a.mT @ b)


@form("linalg_matrix_exp", way="a fixed polynomial", fused=True)
def _exp_of_tiny(x: Any) -> Any:
    """Scaled by 2⁻⁴, to the eighth power, squared four times; with products that code fuses.

    ATen sorts matrices by their norms, on the host, to take as few products as each needs.
    """
    need(x.dim() > 2, x.shape[-1] <= _TINY_EXP, x.is_floating_point())
    small = x / 2**_SQUARINGS
    y = one = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device).expand(x.shape)
    for power in range(_POWERS, 0, -1):  # Horner's scheme
        y = one + (small.unsqueeze(-1) * y.unsqueeze(-3)).sum(-2) / power
    for _ in range(_SQUARINGS):
        y = (y.unsqueeze(-1) * y.unsqueeze(-3)).sum(-2)
    return y


@form("prod", way="the exponential of a sum of logarithms", fused=True)
def _by_logarithms(x: Any, dim: Any = None, keepdim: bool = False, *_: Any) -> Any:
    """Of positive factors. The gradient of a product is two running products over all of them."""
    need(dim is not None, x.is_floating_point())
    return x.log().sum(dim, keepdim=keepdim).exp()


@form("linalg_inv_ex", way="a solve", result=None)
def _solved(x: Any, *_: Any) -> Any:
    """For one column: an inverse that is only multiplied with a few is not needed."""
    return torch.linalg.solve(x, x[..., :1])


def _on_the_host(name: str) -> Act:
    """Many small factorizations, or badly parallel ones, which a GPU does one after the other."""

    def act(x: Any, *settings: Any) -> Any:
        need(x.is_cuda)
        return [each.cuda() for each in getattr(torch.ops.aten, name)(x.cpu(), *settings)]

    return act


form("_linalg_svd", way="on the CPU", result=1)(_on_the_host("_linalg_svd"))
form("_linalg_eigh", way="on the CPU")(_on_the_host("_linalg_eigh"))
form("linalg_eig", way="on the CPU", result=None)(_on_the_host("linalg_eig"))
form("linalg_qr", way="on the CPU", result=1)(_on_the_host("linalg_qr"))


@form("linalg_qr", way="a Cholesky factor", result=1, alike=lambda r: r.double().abs())
def _by_cholesky(x: Any, mode: str = "reduced") -> Any:
    """Columns may have the other sign. Batches are one call, which a GPU's qr makes for each."""
    need(mode == "reduced", x.shape[-2] >= x.shape[-1])
    upper = torch.linalg.cholesky_ex(x.mT @ x, upper=True)[0]
    return torch.linalg.solve_triangular(upper, x, upper=True, left=False), upper


@form("_trilinear", way="einsum", fused=True)
def _einsum(
    one: Any, two: Any, three: Any, at: Sizes, of: Sizes, to: Sizes, summed: Sizes, *_: int
) -> Any:
    """Of nn.Bilinear and its gradients, which ATen makes in a loop over one dimension.

    ``at``, ``of`` and ``to`` are the dimensions that the operands are expanded along.
    """
    letters = "abcdefgh"[: one.dim() + len(at)]
    operands = ["".join(c for n, c in enumerate(letters) if n not in each) for each in (at, of, to)]
    kept = "".join(c for n, c in enumerate(letters) if n not in summed)
    return torch.einsum(f"{','.join(operands)}->{kept}", one, two, three)


@form(
    *("baddbmm", "addmm"),
    way="a product and an addition",
    result=None,
    compiled=lambda bias, *operands: _product_of(bias, *operands) + bias,
)
def _product_of(bias: Any, left: Any, right: Any, *factors: float) -> Any:
    """Where the bias is the same for many rows: the library gets a copy of it in full.

    The product alone: compiled code adds the bias in the kernel that reads the result.
    """
    need({*factors} <= {1}, 0 in bias.stride(), left.dim() == bias.dim())
    return torch.matmul(left, right)


@form("mm", "bmm", way="products of parts")
def _in_parts(left: Any, right: Any, *_: Any) -> Any:
    """Few results, each a sum of many: parts of it side by side."""
    added = left.shape[-1]
    need(added >= _MANY_ADDED, max(left.shape[-2], right.shape[-1]) <= _FEW_RESULTS)
    parts = min(_MOST_PARTS, max(_LEAST_PARTS, added // _MANY_ADDED))
    need(added % parts == 0)
    lefts = left.unflatten(-1, (parts, -1)).movedim(-2, -3)
    return (lefts @ right.unflatten(-2, (parts, -1))).sum(-3)


@form("mm", "bmm", way="multiplied and summed", fused=True)
def _summed(left: Any, right: Any, *_: Any) -> Any:
    """Of a vector, or tiny matrices: one generated kernel, with what is around it."""
    if right.shape[-1] == 1:
        return (left * right.mT).sum(-1, keepdim=True)
    if left.shape[-2] == 1:
        return (left.mT * right).sum(-2, keepdim=True)
    need(max(*left.shape[-2:], right.shape[-1]) <= _TINY)
    return (left.unsqueeze(-1) * right.unsqueeze(-3)).sum(-2)


def spread_of(x: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """Variance and mean: generated code has the mean by then, or makes it in a loop before."""
    dims = list(range(x.dim())) if dim is None else [each % x.dim() for each in dim]
    mean = x.mean(dims, keepdim=True)
    count = x.numel() // mean.numel() - (1 if correction is None else int(correction))
    var = (x - mean).square().sum(dims, keepdim=keepdim) / count
    return var, mean if keepdim else mean.squeeze(dims)


@form("var", way="two passes", fused=True)
def _var(x: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    return spread_of(x, dim, correction, keepdim)[0]


@form("std", way="two passes", fused=True)
def _std(x: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    return spread_of(x, dim, correction, keepdim)[0].sqrt()


@form("var_mean", way="two passes", fused=True)
def _var_mean(x: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    return spread_of(x, dim, correction, keepdim)


@form("std_mean", way="two passes", fused=True)
def _std_mean(x: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    var, mean = spread_of(x, dim, correction, keepdim)
    return var.sqrt(), mean

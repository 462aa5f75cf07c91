"""
## What it finds
An operator of ATen's or of a library that takes long, and whose result other operators of torch
give in far less time: a pooling with a large window, a convolution with a long kernel, a running
logarithm of sums, a full decomposition of which little is used.

## Why it costs
Inductor has no code of its own for these and calls the same kernel as eager does, so compiling
changes nothing. Which way is fast depends on the sizes: a window of 15 by 15 adds up 225 elements
for each result where two poolings along one dimension each add up 30; a kernel of 365 elements does
365 products for each result where a Fourier transform does some 20. The operator does what it says.

## Evidence
At the script's end the operators that take longest in a compiled step are called again with the
step's own sizes, strides, dtypes and settings on random data, as they are and in each other way
that traceview knows, with the backward where the step has one. A way counts where its results agree
with the operator's but for rounding. The saving is the difference as part of what the operator's
kernels take in the step. Random results (`multinomial`) are not compared.

## What to do
Write it the other way: the finding says which, and what its price is. Compiled code fuses what is
left, so it may save more.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the other way must save.

## References
- ATen/native/Linear.cpp, `_trilinear`
- torch/_inductor/lowering.py, `fallback_handler`, `avg_pool2d`, `max_pool2d_with_indices`
- ATen/native/Convolution.cpp, `_select_conv_backend`
- https://docs.pytorch.org/docs/stable/generated/torch.fft.rfft.html
- https://docs.pytorch.org/docs/stable/generated/torch.linalg.lstsq.html
- https://github.com/pytorch/pytorch/issues/92623
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import NamedTuple

from traceview.rules._gain import Timed, at_first, locations, slowest_lines
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    first_rank,
    milliseconds,
    percent,
    rows,
    severity,
    step_ms,
)
from traceview.torchtext.fx import read_graph, tensor_sizes

CODE = "TV455"
NEEDS = frozenset({"form_trials", "matched_kernels", "step_counts", "graphs"})
SEVERITIES = ("warning", "info")

#: A smaller gain is hard to tell from noise.
LEAST_SHARE = 0.05
#: What is left of a call's time where it is written the other way.
_MOST_LEFT = 0.80
_BY = {True: "calls ATen's {}, as eager does.", False: "has a kernel of its own for {}."}
#: Random results can't be compared; and a solve needs what the inverse is multiplied with.
_UNTRIED = frozenset({"a search in running sums", "a solve"})
_INVERSE, _SOLVE = "aten.linalg_inv_ex", "a solve"
_EXPANDED = "an expanded index"
#: Operators that generated code has in another's place.
_DECOMPOSED = {
    "aten.std": ("aten.var",),
    "aten.std_mean": ("aten.var_mean",),
    "aten.native_layer_norm": ("aten.var_mean",),
    "aten.native_group_norm": ("aten.var_mean",),
    "aten.max_pool2d_with_indices": (
        "prims._low_memory_max_pool_with_offsets",
        "prims._low_memory_max_pool2d_with_offsets",
    ),
}
_COPIES = frozenset({"aten.repeat", "aten.clone", "aten.expand", "aten.view", "aten.reshape"})
_PRODUCTS = frozenset({"aten.mm", "aten.bmm", "aten.addmm", "aten.baddbmm"})
#: An inverse costs as much as a solve for this part of its columns.
_FEW_COLUMNS = 0.5


class _Way(NamedTuple):
    """``name``: as the title says it; what to do, with the price; what to paste."""

    name: str
    what_to_do: str
    code: str


_WAYS = {
    "one dimension at a time": _Way(
        "two poolings, along one dimension each,",
        "Pool along one dimension, then along the next: the result is the same.",
        "y = F.max_pool2d(x, (1, k), 1, (0, k // 2))  # or F.avg_pool2d\n"
        "y = F.max_pool2d(y, (k, 1), 1, (k // 2, 0))",
    ),
    "differences of running sums": _Way(
        "differences of running sums",
        "Take each window's sum as the difference of two running sums, whatever its size. "
        "Rounding grows with the dimension's length.",
        "sums = F.pad(x, (k // 2 + 1, k // 2)).cumsum(-1)\n"
        "y = (sums[..., k:] - sums[..., :-k]) / k  # then the same along the next dimension",
    ),
    "a fixed window": _Way(
        "a pooling with a fixed window",
        "The sizes divide evenly: give the window instead of the size of the result.",
        "y = F.avg_pool2d(x, (height // rows, width // columns))  # or F.max_pool2d",
    ),
    "sorted=False": _Way(
        "topk(sorted=False)",
        "Where the order of the largest values does not matter, don't ask for it.",
        "values, indices = x.topk(k, sorted=False)",
    ),
    "max or min": _Way(
        "max or min", "The largest one needs no topk.", "value, index = x.max(-1, keepdim=True)"
    ),
    "a sort": _Way(
        "a sort", "Sort, and take what is wanted.", "values, indices = x.sort(-1)"
    ),
    "32-bit numbers": _Way(
        "32-bit integers",
        "Where the values fit into 32 bits, sort them so.",
        "values, indices = x.int().sort(-1)",
    ),
    _EXPANDED: _Way(
        "a view of the index",
        "The index is the same in each column. Make it with expand, not with repeat: ATen then "
        "takes whole rows.",
        "rows = index.unsqueeze(1).expand(-1, columns)  # not .repeat(1, columns)",
    ),
    "a search in running sums": _Way(
        "a search in running sums",
        "Draw a number below the sum and look up where the running sum passes it. The draws have "
        "the same distribution, not the same values.",
        "sums = p.cumsum(-1)\n"
        "u = torch.rand(p.shape[0], 1, device=p.device) * sums[:, -1:]\n"
        "drawn = torch.searchsorted(sums, u, right=True)",
    ),
    "bincount": _Way(
        "bincount",
        "Compute each value's bin and count these. Values at a bin's very edge may fall into the "
        "next one.",
        "at = ((x - low) * (bins / (high - low))).long().clamp(0, bins - 1)\n"
        "counts = torch.bincount(at.flatten(), minlength=bins)  # of values within",
    ),
    "the logarithm of a running sum": _Way(
        "the logarithm of a running sum",
        "Subtract the maximum, sum the exponentials and take the logarithm. Elements more than "
        "about 85 below the maximum (float32) become -inf.",
        "m = x.amax(-1, keepdim=True)\ny = (x - m).exp().cumsum(-1).log() + m",
    ),
    "a product with a triangle of ones": _Way(
        "a product with a triangle of ones",
        "A running sum of few elements is a matrix product. Make the triangle once.",
        "ones = torch.ones(n, n).triu()  # once\ny = x @ ones",
    ),
    "full_matrices=False": _Way(
        "svd(full_matrices=False)",
        "Without it, U or V is completed to a square matrix. The columns that go with singular "
        "values are the same.",
        "u, s, vh = torch.linalg.svd(x, full_matrices=False)",
    ),
    "eigenvalues of the product with itself": _Way(
        "the eigenvalues of x.mT @ x",
        "Singular values are their square roots. It halves the number of digits: only for "
        "matrices that are far from singular, or in float64.",
        "squares, v = torch.linalg.eigh(x.mT @ x)\ns = squares.clamp(min=0).sqrt()",
    ),
    "normal equations": _Way(
        "the normal equations",
        "Solve a.mT @ a. It halves the number of digits: only for matrices that are far from "
        "singular, or in float64.",
        "x = torch.linalg.solve(a.mT @ a, a.mT @ b)",
    ),
    _SOLVE: _Way(
        "torch.linalg.solve",
        "The inverse is only multiplied with few columns: solve for these, which is more precise "
        "as well.",
        "y = torch.linalg.solve(a, b)  # not torch.linalg.inv(a) @ b",
    ),
    "on the CPU": _Way(
        "the CPU, with copies there and back,",
        "The GPU does these one after the other. Do them on the CPU, or on all matrices of some "
        "steps together.",
        "found = torch.linalg.eigh(x.cpu())  # and .to(x.device)",
    ),
    "a Cholesky factor": _Way(
        "the Cholesky factor of x.mT @ x",
        "It gives the same columns up to their sign, in a few batched calls. It halves the number "
        "of digits: only for columns that are far from dependent; twice in a row is safer.",
        "r = torch.linalg.cholesky_ex(x.mT @ x, upper=True)[0]\n"
        "q = torch.linalg.solve_triangular(r, x, upper=True, left=False)",
    ),
    "a fixed polynomial": _Way(
        "a polynomial with scaling and squaring",
        "ATen sorts the matrices by their norms on the host and multiplies them in the library. "
        "With a bound of the norms, one polynomial does for all (here for norms up to 8). For "
        "rotations (3 by 3, skew) there is Rodrigues' formula.",
        "y = one + x / 16  # … Horner's scheme to the eighth power, products as sums\n"
        "for _ in range(4):\n"
        "    y = (y.unsqueeze(-1) * y.unsqueeze(-3)).sum(-2)",
    ),
    "the exponential of a sum of logarithms": _Way(
        "the exponential of a sum of logarithms",
        "For positive factors. The gradient of prod is two running products over all elements, "
        "which are written to memory.",
        "y = x.log().sum(dim).exp()  # not x.prod(dim)",
    ),
    "einsum": _Way(
        "torch.einsum",
        "ATen's bilinear layer loops over one dimension, forward and backward. Multiply by the "
        "whole weight, then by the other input, and sum: compiled code fuses the last two.",
        'y = torch.einsum("bi,oij,bj->bo", left, layer.weight, right) + layer.bias',
    ),
    "a product and an addition": _Way(
        "a product and an addition",
        "The bias is the same for many rows, and the library gets a full copy of it. Multiply, "
        "then add: compiled code fuses the addition with what follows.",
        "y = torch.bmm(a, b) + bias  # not torch.baddbmm(bias, a, b)",
    ),
    "products of parts": _Way(
        "products of parts, added up,",
        "Few results each add up many products: do these in parts side by side.",
        "parts = a.unflatten(1, (64, -1)).transpose(0, 1) @ b.unflatten(0, (64, -1))\n"
        "y = parts.sum(0)",
    ),
    "multiplied and summed": _Way(
        "a multiplication and a sum",
        "Of a vector or of tiny matrices, write the product of elements and its sum: compiled "
        "code does both in one kernel, with what is around it. In eager it is slower.",
        "y = (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)  # not a @ b",
    ),
    "an embedding and a reduction": _Way(
        "an embedding and a reduction",
        "Bags have the same size: look the rows up and reduce them, which compiled code does in "
        "one kernel.",
        "y = F.embedding(bags, table).amax(1)  # or sum, mean",
    ),
    "two products": _Way(
        "two matrix products",
        "What each result takes of each element depends on the sizes alone: make the two matrices "
        "once, by resizing an identity matrix.",
        'rows = F.interpolate(torch.eye(h)[None, None], (new_h, h), mode="bilinear", '
        "antialias=True)[0, 0]\ny = rows @ x @ columns.T",
    ),
    "Fourier transforms": _Way(
        "Fourier transforms",
        "A long kernel is a product of spectra. Results differ by rounding.",
        "n = x.shape[-1] + 2 * pad  # or the next length with small factors\n"
        "spectrum = torch.fft.rfft(F.pad(x, (pad, pad)), n) * torch.fft.rfft(weight, n).conj()\n"
        "y = torch.fft.irfft(spectrum, n)[..., : n - k + 1]",
    ),
    "a convolution of fewer dimensions": _Way(
        "a convolution of two dimensions",
        "The kernel has one element in some dimension: fold that into the batch, or flatten it.",
        "y = F.conv2d(x.flatten(3), weight[..., 0], bias, padding=(p, 0)).unflatten(3, (h, w))",
    ),
    "one matrix product": _Way(
        "one matrix product",
        "Patches do not overlap, so each is a row of a matrix.",
        "patches = x.unflatten(3, (-1, k)).unflatten(2, (-1, k)).permute(0, 2, 4, 1, 3, 5)\n"
        "y = patches.flatten(3) @ weight.flatten(1).T + bias  # channels last",
    ),
    "two passes": _Way(
        "the mean of squared differences",
        "Generated code updates mean and variance together, element by element (Welford). With "
        "the mean computed before, it is a plain sum.",
        "mean = x.mean(dim, keepdim=True)\n"
        "var = (x - mean).square().sum(dim) / (n - 1)  # std: its square root",
    ),
    "shifted products": _Way(
        "a sum of shifted products",
        "With few elements for each channel, write the sum: compiled code does it in one kernel, "
        "with what is around it.",
        "x = F.pad(x, (k - 1, 0))\n"
        "y = sum(x[..., i : i + n] * weight[:, 0, i, None] for i in range(k))",
    ),
    "one group with zeros": _Way(
        "one group, with zeros for the others' channels,",
        "The library has fast code for one group only. Place the groups' weights on the diagonal "
        "of one large one.",
        "whole = torch.block_diag(*weight.flatten(1).chunk(groups))  # kernels of one element",
    ),
}  # fmt: skip


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding for each operator and way, at the slowest call's line."""
    step = step_ms(tables, "compiled")
    ran = first_rank(rows(tables, "matched_kernels", stance="compiled"))
    for (op, way), trials in _fastest(tables).items():
        name = op.replace("::", ".")
        computed = {name, name.rstrip("_"), f"{name}_backward", *_DECOMPOSED.get(name, ())}
        mine = _kernels(ran, computed, trials[0])
        if not step or not mine or way not in _WAYS:
            continue
        timed = Timed.of(tables, trials, sum(row["ms"] or 0.0 for row in mine))
        if timed.saved < least_share * step:
            continue
        places = slowest_lines(mine) or _lines(tables, computed)
        words, short = _WAYS[way], name.removeprefix("aten.").strip("_")
        both = ", with the backward" if trials[0]["backward"] else ""
        measured = timed.said("as it is", "the other way")
        yield Finding(
            code=CODE,
            rule="ind-other-form",
            severity=severity(tables, timed.saved),
            title=(
                f"{short}{at_first(*places)}: {words.name} would save "
                f"{milliseconds(timed.saved)}, {percent(timed.saved / step)} of the step"
            ),
            explanation=(
                f"Compiled code {_BY[bool(trials[0]['own'])].format(short)} The same result, "
                "written another way, was timed on the step's own sizes."
            ),
            cost=timed.cost("these calls", f"{measured}{both}"),
            confidence="measured",
            location=places[0] if places else None,
            evidence=tuple(map(_evidence, trials))[:MOST_EVIDENCE],
            what_to_do=words.what_to_do,
            snippet=Snippet("python", words.code),
            remedy=() if way in _UNTRIED else (f"form={name.rstrip('_')}:{way}",),
            also_at=tuple(places[1:4]),
            weighs=True,
        )


def _fastest(tables: Tables) -> dict[tuple[str, str], list[Row]]:
    """(operator, way) → calls for which that way is the fastest, and much faster than as it is.

    With ``base_ms`` and ``ms`` of a step, as a row of ``shape_gains``.
    """
    best: dict[tuple[object, ...], Row] = {}
    for row in first_rank(rows(tables, "form_trials")):
        if row["value"] > _MOST_LEFT * row["base"]:
            continue
        if row["way"] in _CONDITIONS and not _CONDITIONS[row["way"]](tables):
            continue
        call = tuple(row[key] for key in ("op", "shape", "settings", "dtype"))
        if call not in best or row["value"] < best[call]["value"]:
            best[call] = row
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in best.values():
        base_ms, ms = _of_step(row)
        found[row["op"], row["way"]].append({**row, "base_ms": base_ms, "ms": ms})
    return found


def _of_step(row: Row) -> tuple[float, float]:
    """ms of a step as it is and in the other way."""
    return row["count"] * row["base"] / 1e3, row["count"] * row["value"] / 1e3


def _kernels(ran: list[Row], ops: Collection[str], trial: Row) -> list[Row]:
    """Rows of ``matched_kernels`` that do the operator: library calls, or generated code.

    Gradients of generated code have other operators: all that is at its lines.
    """
    mine = [
        row
        for row in ran
        if row["category"].startswith("generated") != trial["own"]
        and not set(ops).isdisjoint(row["ops"] or ())
    ]
    if trial["own"] or not trial["backward"]:
        return mine
    at = {(row["file"], row["line"]) for row in mine if row["line"]}
    return [
        row
        for row in ran
        if row in mine
        or (row["category"].startswith("generated") and (row["file"], row["line"]) in at)
    ]


def _lines(tables: Tables, ops: Collection[str]) -> list[Location]:
    """The lines of these operators in compiled graphs, where kernels have none."""
    texts = (row["text"] or "" for row in first_rank(rows(tables, "graphs", kind="post_grad")))
    nodes = (node for text in texts for node in read_graph(text).operations)
    return locations(node.user_line for node in nodes if node.op in ops)


def _evidence(row: Row) -> Evidence:
    settings = f" ({row['settings']})" if row["settings"] else ""
    base, other = map(milliseconds, _of_step(row))
    return Evidence(
        f"{row['op']} of {row['shape']}{settings}: {base} as it is, {other} as {row['way']}",
        "form_trials",
    )


def _inverses_are_multiplied(tables: Tables) -> bool:
    """Whether compiled code multiplies its inverses with few columns, and reads none otherwise."""
    columns = []
    for row in first_rank(rows(tables, "graphs", kind="post_grad")):
        if _INVERSE not in (row["text"] or ""):
            continue
        graph = read_graph(row["text"])
        made = (node.name for node in graph.operations if node.op == _INVERSE)
        for name in (each for inverse in made for each in graph.users[inverse]):
            size = tensor_sizes(graph.nodes[name].meta) or (0,)
            for reader in (graph.nodes[each] for each in graph.users[name]):
                result = tensor_sizes(reader.meta)
                if reader.op not in _PRODUCTS or not result or name in graph.outputs:
                    return False
                columns.append(result[-1] / max(1, size[-1]))
    return bool(columns) and max(columns) <= _FEW_COLUMNS


def _indices_are_repeated(tables: Tables) -> bool:
    """Whether compiled code scatters by indices that are copies of one column, and by no others."""
    found = []
    for row in first_rank(rows(tables, "graphs", kind="post_grad")):
        if "aten.scatter_" not in (row["text"] or ""):
            continue
        graph = read_graph(row["text"])
        for node in graph.operations:
            if not node.op.startswith(("aten.scatter_add", "aten.scatter_reduce")):
                continue
            index = graph.nodes[node.inputs[1]]
            while index.op in _COPIES and (tensor_sizes(index.meta) or (1, 1))[-1] > 1:
                index = graph.nodes[index.inputs[0]]
            sizes = tensor_sizes(index.meta)
            found.append(sizes is not None and (len(sizes) < 2 or sizes[-1] == 1))
    return bool(found) and all(found)


#: What has to be true of compiled code before a way is one.
_CONDITIONS = {_SOLVE: _inverses_are_multiplied, _EXPANDED: _indices_are_repeated}

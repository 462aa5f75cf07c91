"""What did the work in a window: kernels on a device, operators on a CPU, each with its context.

A library's work has a shape, so that calls of one line that do different work are kept apart.
"""

from __future__ import annotations

from math import prod
from typing import TypeGuard

import msgspec
import polars as pl

from traceview.derive.origins.tree import forward_rows, nearest, with_context
from traceview.derive.windows import Window
from traceview.json_errors import NOT_JSON
from traceview.parse.kineto.categories import USER_KERNEL, is_foreign, operator_category
from traceview.torchtext.dtypes import dtype_of
from traceview.torchtext.output_code import PROFILED_CPP

LIBRARY = ("gemm", "convolution", "attention")
#: Operators that only arrange a library's work: what they copy on the way is no part of it.
_ARRANGING = (
    r"::_?(?:linear|matmul|einsum|bilinear|conv\d?d|conv_transpose\d?d|convolution)$"
    r"|::scaled_dot_product_attention$|::_scaled_dot_product_attention_math"
)
#: What is known of a library's work by the inputs of its operator.
_WORK = ("shape", "dtype", "layout")
_COMMON = ("step", "name", "category", "start_ns", "graph_key", "compile_id", "region")
_CAST = r'^\["([^"]*)", ?"([^"]*)"'


def operators(window: Window) -> pl.DataFrame:
    """The window's operators with what stands around them and the library that they serve.

    ``within`` a library's operator all work is the library's; ``above`` it stands one that only
    arranges, whose copies are not.
    """
    ops = with_context(window.ops)
    served = {name: operator_category(name) for name in ops["name"].unique()}
    served = {name: kind for name, kind in served.items() if kind in LIBRARY}
    # What an operator of the user's own runs is that operator's, whatever it is.
    served |= {name: USER_KERNEL for name in ops["name"].unique() if is_foreign(name)}
    ops = ops.with_columns(
        served=pl.col("name").replace_strict(served, default=None, return_dtype=pl.String),
        arranging=pl.col("name").str.contains(_ARRANGING),
        forward_row=forward_rows(ops),
    )
    library = ops["served"].is_not_null()
    serving = nearest(library & ~ops["arranging"], ops["parent_row"])
    within = ops["served"][serving]
    above = ops["served"].gather(nearest(library & ops["arranging"], ops["parent_row"]))
    inputs = ("input_dims", "input_strides", "input_types")
    known = ops.filter(library).select("served", "name", *inputs).unique()
    found = []
    for kind, operator, dims, strides, types in known.iter_rows():
        dtypes = (dtype_of(name) for name in listed(types) if isinstance(name, str))
        layout = library_layout(kind, operator, dims, strides)
        dtype = next(filter(None, dtypes), None)
        found.append((library_shape(kind, operator, dims), dtype, layout))
    named = pl.DataFrame(found, dict.fromkeys(_WORK, pl.String), orient="row")
    works = ops.select(known.columns).join(
        known.hstack(named), on=known.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    cast = pl.col("input_types").str.extract_groups(_CAST).struct
    return ops.with_columns(
        *(works[name][serving] for name in _WORK),
        within=within,
        above=pl.when(pl.col("backward_row").is_null()).then(above),
        is_cast=(
            (pl.col("name") == "aten::copy_") & (cast.field("1") != cast.field("2"))
        ).fill_null(False),
    ).drop("arranging", "served")


def executions(window: Window, ops: pl.DataFrame) -> pl.DataFrame:
    """One row an execution inside the steps, in order of launch.

    ``name``, ``plain`` (without the graph's number), ``category``, ``cpu_op``, ``ns``, ``kind``
    (``gemm``, ``convolution``, ``attention``, ``communication``; all that is bound by memory:
    ``memory``; a custom operator or the user's own Triton: ``user_kernel``), ``mark`` (start of the
    call of its graph) and the columns of its operator.
    """
    context = ops.select(
        *("row", "op_id", "top_row", "backward_row", "forward_row", "graph_row", "parent_row"),
        *("within", "above", "is_cast", *_WORK),
    ).unique("op_id", keep="none")
    if window.on_device:
        launched = pl.coalesce("launch_start_ns", "start_ns")
        found = window.main_kernels.select(
            *_COMMON,
            *("cpu_op", "in_cudagraph"),
            ns="duration_ns",
            op_id="cpu_op_id",
            launched_ns=launched,
        )
    else:
        found = window.working_operators.select(
            *_COMMON,
            "op_id",
            cpu_op=pl.lit(None, dtype=pl.String),
            in_cudagraph=pl.lit(False),
            ns="self_ns",
            launched_ns="start_ns",
        )
    found = found.join(context, on="op_id", how="left").sort(
        "launched_ns", "start_ns", maintain_order=True
    )
    marks = (
        ops.filter(pl.col("row") == pl.col("graph_row"))
        .select("graph_key", pl.col("start_ns").alias("mark"))
        .sort("mark")
    )
    found = found.join_asof(
        marks,
        left_on="launched_ns",
        right_on="mark",
        by="graph_key",
        coalesce=False,
        check_sortedness=False,
    )
    category = pl.col("category")
    copies = category.is_in(["copy", "memset"])
    kind = (
        pl.when(category.is_in([*LIBRARY, "communication"]))
        .then(category)
        .when(pl.col("within").is_not_null())
        .then(pl.col("within"))
        .when(category == USER_KERNEL)
        .then(category)
        .when(pl.col("above").is_not_null() & ~copies)
        .then(pl.col("above"))
        .otherwise(pl.lit("memory"))
    )
    return found.with_columns(
        plain=pl.col("name").str.replace(PROFILED_CPP, "${1}"),
        kind=kind,
        is_cast=pl.col("is_cast").fill_null(False),
    ).with_columns(pl.when(pl.col("kind").is_in(LIBRARY)).then(pl.col(name)) for name in _WORK)


def library_layout(kind: str, operator: str, dims: str | None, strides: str | None) -> str | None:
    """How the operands of ``operator`` lie in memory: ``contiguous, transposed``."""
    both = list(zip(listed(dims), listed(strides), strict=False))
    if operator.rpartition("::")[2].startswith(_ADDED):
        both = both[1:]
    words = [
        _lies(size, stride)
        for size, stride in both
        if _is_tensor(size) and _is_tensor(stride) and len(size) == len(stride)
    ]
    return ", ".join(words[: 3 if kind == "attention" else 2]) or None


def _lies(size: list[int], stride: list[int]) -> str:
    """The layout of one tensor; dimensions of one element lie in any."""
    real = [at for at, n in enumerate(size) if n != 1]
    order = sorted(real, key=lambda at: (-stride[at], at))
    name = "contiguous"
    if order != real:
        name = f"strides {'x'.join(map(str, stride))}"
        if len(size) in (4, 5) and order == [*(at for at in real if at != 1), 1]:
            name = "channels last"
        elif order == [*real[:-2], *real[:-3:-1]]:
            name = "transposed"
    step = 1
    for at in reversed(order):
        if stride[at] != step:
            return f"{name} with gaps"
        step *= size[at]
    return name


def listed(text: str | None) -> list[object]:
    """A list of the profiler's; empty where it can't be read."""
    try:
        return _DIMS.decode(text) if text else []
    except NOT_JSON:
        return []


def _is_tensor(value: object) -> TypeGuard[list[int]]:
    """Whether these are the sizes, or strides, of one tensor; a list of tensors has lists."""
    return (
        isinstance(value, list) and len(value) > 1 and all(isinstance(each, int) for each in value)
    )


_DIMS = msgspec.json.Decoder(list[object])
#: The first operand of these is what is added to the product.
_ADDED = ("add", "badd")


def library_shape(kind: str, operator: str, dims: str | None) -> str | None:
    """What ``operator`` works on, by its ``Input Dims``; None where they do not say.

    A product's is ``MxN, K`` whatever side is transposed, so M is the smaller; batches come first.
    Of convolutions and attention: the operands' sizes.
    """
    given = listed(dims)
    if operator.rpartition("::")[2].startswith(_ADDED):
        given = given[1:]
    sizes = [each for each in given if _is_tensor(each)]
    if kind != "gemm":
        return ", ".join("x".join(map(str, size)) for size in sizes[:3]) or None
    if "linear" in operator:  # rows of the weight are columns of the result
        weights = (size for size in sizes[1:] if len(size) == 2 and size[1] == sizes[0][-1])
        weight = next(weights, None)
        sizes = [[prod(sizes[0][:-1]), sizes[0][-1]], weight[::-1]] if weight else []
    if len(sizes) < 2 or sizes[0][-1] != sizes[1][-2]:
        return None
    outer = sorted((sizes[0][-2], sizes[1][-1]))
    return "x".join(map(str, (*sizes[0][:-2], *outer))) + f", {sizes[0][-1]}"

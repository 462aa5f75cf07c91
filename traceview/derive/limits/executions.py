"""One execution's work and shapes, by whatever the run holds of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from traceview.derive.limits.generated import (
    GeneratedCode,
    common_work,
    kernel_work,
    site_tensors,
    site_work,
)
from traceview.derive.limits.inputs import Inputs, Tensor, TensorList, read_inputs
from traceview.derive.limits.operators import operator_work
from traceview.derive.limits.work import EXACT, Work
from traceview.torchtext.kernel_source import KernelSource
from traceview.torchtext.output_code import Site

Row = dict[str, Any]
_CPP_GRAPH = re.compile(r"^graph_\d+_(?=cpp_)")
_MOST_SHAPES = 8


class Execution(msgspec.Struct, frozen=True):
    """What is known of a kernel at one shape.

    ``origin`` as in ``bytes_from``; ``operator``: the work is that of all kernels of its operator;
    ``host``: one end of the copy is the host, so that no ceiling of the device applies.
    """

    work: Work | None = None
    origin: str | None = None
    shapes: str | None = None
    operator: bool = False
    host: bool = False


def execution(row: Row, pass_name: str, code: GeneratedCode, sites: Sequence[Site]) -> Execution:
    """The execution that ``row`` tells of: a kernel's columns, its operator's inputs, its site."""
    if row["kind"] != "kernel":
        return _copied(row)
    site = None if row["site"] is None else sites[row["site"]]
    inputs = read_inputs(
        row["input_dims"], row["input_types"], row["input_strides"], row["concrete_inputs"]
    )
    if row["category"].startswith("generated_"):
        return _generated(row, pass_name, code, site, inputs)
    if site is not None:
        work = site_work(site, None)
        return Execution(
            work, "generated_code", _shapes(site_tensors(site.arguments)), work is not None
        )
    if inputs is None or row["cpu_op"] is None:
        return Execution()
    work = operator_work(row["cpu_op"], inputs, row["name"])
    return Execution(work, "input_dims", _shapes(inputs.arguments), work is not None)


def _copied(row: Row) -> Execution:
    """A copy inside the device reads and writes; one to or from the host does one of both here."""
    if row["bytes"] is None or row["bytes"] < 0:
        return Execution()
    inside = row["kind"] == "memcpy" and "DtoD" in row["name"]
    host = row["kind"] == "memcpy" and not inside
    return Execution(Work(row["bytes"] * (2 if inside else 1), EXACT), "copy", host=host)


def _generated(
    row: Row, pass_name: str, code: GeneratedCode, site: Site | None, inputs: Inputs | None
) -> Execution:
    name = _CPP_GRAPH.sub("", row["name"])
    places = (row["graph_key"], row["compile_id"])
    source = code.source(pass_name, name, *places)
    if source is None:
        return Execution(shapes=_shapes(inputs.arguments) if inputs else None)
    tensors = _launched(source, inputs) if inputs else []
    if any(tensors):
        return Execution(kernel_work(source, tensors), "generated_code", _shapes(tensors))
    sites = [site] if site else code.sites(pass_name, name, *places)
    work = common_work(sites, source) if sites else kernel_work(source, [])
    shapes = _shapes(site_tensors(sites[0].arguments)) if sites and work else None
    return Execution(work, "generated_code", shapes)


def _launched(source: KernelSource, inputs: Inputs) -> list[Tensor | None]:
    """Tensors of the real launch; none where they are not those that the source names."""
    found = [inputs.tensor(n) for n in range(len(inputs.arguments))]
    for pointer in source.pointers:
        tensor = found[pointer.position] if pointer.position < len(found) else None
        if tensor is None or pointer.dtype not in (None, tensor.dtype):
            return []
    return found


def _shapes(arguments: Sequence[object]) -> str | None:
    """``float32[64, 512], bfloat16[512]``; of many only the first."""
    parts = []
    for argument in arguments:
        if isinstance(argument, Tensor):
            parts.append(f"{argument.dtype}{list(argument.dims)}")
        elif isinstance(argument, TensorList):
            parts.append(f"{len(argument.numels)} tensors")
    left_out = len(parts) - _MOST_SHAPES
    text = ", ".join(parts[:_MOST_SHAPES])
    return (text + f", {left_out} more" if left_out > 0 else text) or None

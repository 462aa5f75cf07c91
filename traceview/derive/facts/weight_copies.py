"""Table ``weight_copies``: weights of convolutions that generated code lays out in every call.

On a CPU Inductor computes convolutions with channels last: a weight of another layout is copied
before each, by a generated kernel of its own or as part of one. What is read here is the generated
code: a kernel that takes an input of the graph and fills a buffer of the same sizes with other
strides, which a convolution then takes for its weight.
"""

from __future__ import annotations

import re
from collections import defaultdict
from math import prod
from typing import Any

import polars as pl

from traceview.derive.kernel_groups import Origins
from traceview.derive.limits.generated import GeneratedCode
from traceview.derive.windows import GENERATED
from traceview.tables import Tables, from_rows
from traceview.torchtext.dtypes import size_of
from traceview.torchtext.output_code import PROFILED_CPP, Function

Row = dict[str, Any]
_CONVOLUTION = "extern_kernels.convolution"
_WEIGHT = 1  # its position among a convolution's arguments
_INFERENCE = "inference"


def weight_copies(tables: Tables) -> pl.DataFrame | None:
    """Table ``weight_copies``; None where no step was profiled."""
    if tables["matched_kernels"].is_empty():
        return None
    kernels = tables["matched_kernels"].filter(GENERATED, stance="compiled", clock="host")
    keys = ("pass", "rank", "name", "compile_id", "graph_key", "aot_id")
    code, origins = GeneratedCode(tables), Origins(tables)
    result = []
    ran = kernels.group_by(keys, maintain_order=True).agg(pl.col("ms", "count").sum())
    for kernel in ran.iter_rows(named=True):
        # A weight that is trained changes in every step: only inference can keep a copy.
        if not (kernel["aot_id"] or "").endswith(_INFERENCE):
            continue
        name = re.sub(PROFILED_CPP, r"\1", kernel["name"])
        places = (kernel["graph_key"], kernel["compile_id"])
        origin = origins.of(kernel["pass"], name, *places)
        functions = code.functions(kernel["pass"], *places)
        copied = [found for f in functions for found in laid_out(f).get(name, ())]
        calls = sum(site.kernel == name for f in functions for site in f.sites)
        if origin is None or not copied or not calls:
            continue
        # Sites differ in what else they do: by the part of what they touch that is the weight.
        share = sum(part for _, part in copied) / calls
        result.append(
            {
                **{key: kernel[key] for key in ("pass", "rank", "aot_id")},
                **{key: origin[key] for key in ("compile_key", "compile_id", "user_lines")},
                **{key: origin[key] for key in ("raw_file", "raw_line")},
                "kernel_name": name,
                "weights": len(copied),
                "bytes": sum(size for size, _ in copied),
                "count": kernel["count"],
                "profiled_ms": kernel["ms"],
                "share": share,
                "ms": share * kernel["ms"],
            }
        )
    return from_rows("weight_copies", result)


def laid_out(function: Function) -> dict[str, list[tuple[int, float]]]:
    """Kernel → (bytes of a weight that it copies, part of all that this call of it touches)."""
    weights = {
        site.arguments[_WEIGHT].name
        for site in function.sites
        if site.kernel == _CONVOLUTION and len(site.arguments) > _WEIGHT
    }
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for site in function.sites:
        known = [(a.name, a.buffer) for a in site.arguments if a.name and a.buffer]
        elements = [prod(size or 0 for size in buffer.dims) for _, buffer in known]
        inputs = [buffer for name, buffer in known if name in function.dtypes]
        for (name, made), numel in zip(known, elements, strict=True):
            if site.library or name not in weights or not numel:
                continue
            if any(b.dims == made.dims and b.strides != made.strides for b in inputs):
                bytes_copied = numel * size_of(made.dtype or "float32")
                found[site.kernel].append((bytes_copied, 2 * numel / sum(elements)))
    return found

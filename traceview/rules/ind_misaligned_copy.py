"""
## What it finds
Inputs that torch copies at each call, because their memory is not aligned to 16 bytes as the
compiled code expects.

## Why it costs
Generated kernels load 16 bytes at a time where an input was aligned when it was compiled. A later
one that is not, a slice such as `x[1:]`, is cloned before the first kernel: one more copy of all
its bytes, and three calls on the host. Eager code just loads it more slowly.

## Evidence
In the profile of compiled steps, `aten::clone` of a flat view in a compiled graph before its first
kernel, where the generated code contains no clone: nothing else puts one there. Where the profile
shows which view the input is, its storage offset. The cost is the copies' time on the device;
where the GPU waits for launches, the host's time for them.

## What to do
Let slices begin at multiples of 16 bytes (4 elements of float32, 8 of bfloat16), or pass the whole
tensor and slice inside the compiled function. If most inputs are not aligned, make the first call
with one of them: the code is then compiled without the assumption, and copies nothing.

## Settings
- `least_share`: part of the step, 0 to 1, that the copies must take.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/_inductor/utils.py, `copy_misaligned_inputs`, `align_inputs_from_check_idxs`
- torch/_inductor/config.py, `assume_aligned_inputs`
- https://github.com/pytorch/pytorch/issues/112771
- https://github.com/pytorch/pytorch/pull/123319
- https://github.com/pytorch/pytorch/issues/154442
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import polars as pl

from traceview.json_errors import NOT_JSON
from traceview.rules._gain import compiled_rows, idle_ms
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Owners,
    Tables,
    about,
    first,
    first_rank,
    frame,
    milliseconds,
    percent,
    rows,
    severity,
    step_ms,
)
from traceview.torchtext.marks import GRAPH

CODE = "TV404"
NEEDS = frozenset({"cpu_ops", "kernels", "kernel_calls", "step_counts"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"copies_added"})
GPU_ONLY = True

#: Below a hundredth of a step the difference is not visible.
LEAST_SHARE = 0.01
#: torch/_inductor/utils.py, in bytes.
_ALIGNMENT = 16
_COPYING = ("aten::clone", "aten::as_strided")


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding for each compiled graph."""
    ops = compiled_rows(tables, "cpu_ops").filter(pl.col("step").is_not_null())
    step = step_ms(tables, "compiled")
    if not step:
        return
    for _, graph in _clones(tables, ops).group_by("graph_key", maintain_order=True):
        made = ops.join(
            graph.select("step", parent_id="op_id"), on=["step", "parent_id"], how="semi"
        )
        ids = pl.concat([made.select("op_id"), graph.select("op_id")]).select(cpu_op_id="op_id")
        copies = compiled_rows(tables, "kernels").join(ids, on="cpu_op_id", how="semi")
        calls = graph.select("step", "parent_id").unique()
        cost = _cost(tables, ops, calls, copies)
        if cost.ms_per_step is None or cost.ms_per_step < least_share * step:
            continue

        compiles = first_rank(rows(tables, "compiles", compile_id=graph["compile_id"][0]))[:1]
        called = Owners(tables).called(compiles[0]) if compiles else None
        sliced, offset = _offset(tables, ops, graph, copies)
        if sliced and called and (sliced.file, sliced.line) == (called.file, called.line):
            sliced = None
        every, copied = graph.item(0, "calls"), calls.height
        evidence = [
            Evidence(
                f"{graph.height / copied:.3g} × aten::clone before the first kernel in "
                f"{copied} of {every} calls of the graph, none in its code; sizes "
                f"{graph['input_dims'][0]}",
                "cpu_ops",
            ),
            *offset,
        ]
        if copies.height:
            each = milliseconds(float(copies["duration_ns"].sum()) / copies.height / 1e6)
            evidence.append(Evidence(f"{copies['name'][0]}: {each} each on the device", "kernels"))
        often = "each call" if copied >= every else f"{percent(copied / every)} of the calls"
        yield Finding(
            code=CODE,
            rule="ind-misaligned-copy",
            severity=severity(tables, cost.ms_per_step),
            title=f"An input is copied at {often}: its memory is not aligned to 16 bytes",
            explanation=(
                "The code was compiled for inputs that begin at a multiple of 16 bytes. One "
                "that does not is cloned before the first kernel; eager code reads it where "
                "it is."
            ),
            cost=cost,
            confidence="derived",
            location=sliced or called,
            about=about(*compiles),
            evidence=tuple(evidence),
            what_to_do=(
                "Let the slice begin at a multiple of 16 bytes, or pass the whole tensor and "
                "slice inside the compiled function. If most inputs are like that, make the "
                "first call with one: then the code is compiled for them and copies nothing."
            ),
            also_at=(called,) if sliced and called else (),
        )


def _clones(tables: Tables, ops: pl.DataFrame) -> pl.DataFrame:
    """Clones of flat views that a graph's wrapper makes before the graph's first own operation."""
    marks = ops.filter(pl.col("name").str.starts_with(GRAPH)).select(
        "step", parent_id="op_id", calls=pl.len().over("graph_key")
    )
    inside = ops.join(marks, on=["step", "parent_id"])
    own = (
        inside.filter(~pl.col("name").is_in(_COPYING))
        .group_by("step", "parent_id")
        .agg(begins=pl.col("op_id").min())
    )
    written = frame(tables, "kernel_calls").filter(pl.col("kernel_name").str.contains("clone"))
    library = written.filter(pl.col("category").is_in(["extern", "fallback"]))
    flat = pl.col("input_strides").str.replace_all(" ", "").str.starts_with("[[1],")
    clones = inside.filter(flat, name="aten::clone").join(own, on=["step", "parent_id"])
    return clones.filter(pl.col("op_id") < pl.col("begins")).join(
        library, on="graph_key", how="anti"
    )


def _cost(tables: Tables, ops: pl.DataFrame, calls: pl.DataFrame, copies: pl.DataFrame) -> Cost:
    """``copies`` on the device, or on the host in these ``calls``, as far as the device waits."""
    counts, step = first(tables, "step_counts", stance="compiled"), step_ms(tables, "compiled")
    if counts is None or not counts["step_ms"] or not step:
        return Cost()
    copying = ops.filter(pl.col("name").is_in(_COPYING))
    near = copying.join(calls, on=["step", "parent_id"], how="semi")
    steps = max(1, ops["step"].n_unique())
    device, host = (float(ran["duration_ns"].sum()) / 1e6 / steps for ran in (copies, near))
    waits = min(host * step / counts["step_ms"], idle_ms(tables, "launch") or 0.0)
    if waits > device:
        return Cost(waits, None, "host time of the copies, while the GPU waits for launches")
    return Cost(device, None, "device time of the copies, profiler window")


def _offset(
    tables: Tables, ops: pl.DataFrame, clones: pl.DataFrame, copies: pl.DataFrame
) -> tuple[Location | None, list[Evidence]]:
    """A view of the user's, as large as what was cloned, that is not aligned: line and proof."""
    moved = copies["bytes"].drop_nulls()
    elements = math.prod(_numbers(clones["input_dims"][0]))
    if moved.is_empty() or not elements:
        return None, []
    size = int(moved[0]) // elements
    views = ops.filter(pl.col("graph_key").is_null(), name="aten::as_strided")
    for op_id, parent, text in views.select("op_id", "parent_id", "concrete_inputs").iter_rows():
        try:
            given = json.loads(text or "[]")
        except NOT_JSON:
            continue
        if not isinstance(given, list) or len(given) != 4:
            continue
        start = str(given[3]).strip("[]")
        aligned = not start.isdecimal() or size * int(start) % _ALIGNMENT == 0
        if aligned or math.prod(_numbers(str(given[1]))) != elements:
            continue
        by = ops.filter(pl.col("op_id") == (parent if parent is not None else op_id))["name"][0]
        text = f"{by} made it at storage offset {start} × {size} bytes, which is not aligned"
        # The user's one line outside compiled calls that ran it; None where there are several.
        ran = frame(tables, "line_ops", stance="compiled").filter(
            pl.col("region").is_null() & pl.col("line").is_not_null(), name=by
        )
        lines = ran.select("file", "line").unique()
        line = Location(*lines.row(0)) if lines.height == 1 else None
        return line, [Evidence(text, "cpu_ops")]
    return None, []


def _numbers(text: str | None) -> list[int]:
    """The first list of sizes in ``[[4, 2], []]`` or ``[4, 2]``; nothing for any other text."""
    inner = (text or "").replace(" ", "").lstrip("[").partition("]")[0]
    parts = inner.split(",")
    return [int(part) for part in parts] if all(map(str.isdecimal, parts)) else [0]

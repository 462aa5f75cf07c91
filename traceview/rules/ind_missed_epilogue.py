"""
## What it finds
A matrix product of the library whose result a separate kernel reads right after it: an activation,
a scale, a residual.

## Why it costs
The library's kernel does no other work, so the product goes to memory and is read back. A GEMM
template of Inductor's can do such work before it writes.

## Evidence
Inductor's record of what it fuses: pointwise work right after a product that is a library call,
which it did not try to fuse. The cost is what writing and reading the product in between takes at
the copy bandwidth that was measured here: the most that fusing could save, if the template
multiplied as fast as the library. It often does not, so this is information. Where torch tried both
ways and kept the library's, the rule is silent.

## What to do
With `mode="max-autotune-no-cudagraphs"` torch times both ways for each product and keeps the
faster; compiling takes much longer. It needs a GPU with 68 multiprocessors or more. Compare the
step: on an H200, with bf16 products and templates alone, it became slower.

## Settings
- `least_share`: part of the step, 0 to 1, that fusing could save at most.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- torch/_inductor/config.py, `max_autotune_gemm`, `benchmark_epilogue_fusion`
- torch/_inductor/select_algorithm.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from traceview.rules import _edits
from traceview.rules._gain import at_first, location
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Cost,
    Finding,
    Row,
    Snippet,
    Tables,
    about,
    compile_call,
    first,
    first_rank,
    frame,
    from_row,
    milliseconds,
    percent,
    plural,
    rows,
    shorten,
    step_ms,
)

CODE = "TV403"
NEEDS = frozenset({"fusion_notes", "kernel_groups", "generated_kernels", "ceilings"})
SEVERITIES = ("info",)
GPU_ONLY = True

#: Templates are often slower than the library by a few percent: less than this is not worth a try.
LEAST_SHARE = 0.10
_MODE = 'mode="max-autotune-no-cudagraphs"'


class _Missed(NamedTuple):
    """One note of the fusions, the most that fusing would save of a step, its kernels' time."""

    note: Row
    ms: float
    kernels_ms: float


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such products, at the most expensive one's line."""
    step = step_ms(tables, "compiled")
    missed = sorted(_missed(tables), key=lambda one: -one.ms)
    ms = sum(one.ms for one in missed)
    if step and missed and ms >= least_share * step:
        share = ms / step
        products = (location(next(iter(one.note["lines"] or ()), "")) for one in missed)
        lines = list(dict.fromkeys(filter(None, products)))
        keys = {one.note["compile_key"] for one in missed}
        compiles = [row for row in rows(tables, "compiles") if row["compile_key"] in keys]
        kernels_ms = sum(one.kernels_ms for one in missed)
        where = at_first(*lines)
        snippet, region = None, first(tables, "regions")
        if region is not None and region["mode"] is None and region["options"] is None:
            snippet = _edits.added(_edits.source_line(tables, compile_call(region)), _MODE)
            snippet = snippet or Snippet("python", f"torch.compile(..., {_MODE})")
        yield Finding(
            code=CODE,
            rule="ind-missed-epilogue",
            severity="info",
            title=(
                f"Matrix products{where} go through memory to a separate kernel: up to "
                f"{percent(share)} of a step"
            ),
            explanation=(
                "The products are library calls, which do no other work. The kernels right after "
                f"them take {milliseconds(kernels_ms)} of a step, mostly to read what the "
                "products wrote."
            ),
            cost=Cost(
                ms,
                None,
                "writing and reading the products in between, at the copy bandwidth: the most",
            ),
            confidence="derived",
            location=lines[0] if lines else None,
            about=about(*compiles),
            evidence=tuple(
                from_row(
                    f"{shorten(one.note['text'], 150)} ({milliseconds(one.kernels_ms)} of a step"
                    + (f", {plural(one.note['times'], 'product')})" if one.note["times"] else ")"),
                    "fusion_notes",
                    one.note,
                )
                for one in missed[: MOST_EVIDENCE - 1]
            ),
            what_to_do=(
                f"Try {_MODE}: torch then times both ways for each product and keeps the faster "
                "one. Compiling takes much longer, and the library may still win: compare the "
                "step."
            ),
            snippet=snippet,
            remedy=("mode=max-autotune-no-cudagraphs",) if snippet else (),
            also_at=tuple(lines[1:4]),
        )


def _missed(tables: Tables) -> Iterator[_Missed]:
    copy = first(tables, "ceilings", kind="copy")
    if copy is None or not copy["value"]:
        return
    for note in first_rank(rows(tables, "fusion_notes", kind="epilogue_not_tried")):
        # Time of a step in each pointwise kernel, and how often its graph is called.
        kernels: list[tuple[float, float]] = []
        for name in note["kernels"] or ():
            ran = frame(tables, "kernel_groups", stance="compiled", name=name, clock="device")
            code = frame(tables, "generated_kernels", kernel_name=name, category="pointwise")
            own = code.filter(pl.col("compile_key") == note["compile_key"])
            sites = float(own["launch_sites"].sum())
            if sites and not ran.is_empty():
                kernels.append((float(ran["ms"][0]), float(ran["count"][0]) / sites))
        if note["bytes_saved"] and kernels and len(kernels) == len(note["kernels"]):
            kernels_ms = sum(ms for ms, _ in kernels)
            calls = min(calls for _, calls in kernels)
            saved = note["bytes_saved"] * calls / (copy["value"] * 1e6)
            yield _Missed(note, min(saved, kernels_ms), kernels_ms)

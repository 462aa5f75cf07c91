"""
## What it finds
`dynamic=True` on a callable whose tensors have the same sizes in every call. Or code for any size
that steps run because of a single call with other sizes.

## Why it costs
The graph then calculates with sizes that never change: index arithmetic in the kernels, loops that
are not unrolled, fewer fusions and choices made for the shape, no cudagraph without a recording for
each size. torch's own benchmarks lost a tenth of their speedup with it. Most expensive are
reshapes, shuffles and rolls: a generated loop finds each element by divisions with sizes, which
take no time if the sizes are constants, and has no vector code.

## Evidence
A torch.compile call with `dynamic=True`, symbols for sizes in what was compiled for it, and one
combination of sizes in all calls that were looked at (those outside of the timed blocks). Without
`dynamic=`, one such call had other sizes, and the profiled steps run what has the symbols. Where
generated kernels on a CPU divide by symbolic sizes for each element, the cost is measured: what
they take longer than the eager operators that they replaced. Elsewhere it is information: that
static code is faster is likely, and was not measured.

## What to do
Leave `dynamic=` out: the first sizes are then constants, and if a size does change later, torch
makes it symbolic by itself, for one more compile. A single call with other sizes (a preview, a
warm-up): make it in eager, or compile with `dynamic=False`, which makes code for each combination.

## Settings
- `fewest_calls`: with fewer calls looked at, it is not reported.
- `least_share`: part of the compiled step, 0 to 1, that such kernels must lose to be its cost.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- torch/_dynamo/config.py, `assume_static_by_default`
- https://github.com/pytorch/pytorch/pull/98238
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from traceview.rules._slow_loops import kernels, slow
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Row,
    Tables,
    about_region,
    compile_call,
    first_rank,
    from_row,
    milliseconds,
    plural,
    region_of,
    rows,
    severity,
)
from traceview.torchtext import cpp_loops

CODE = "TV214"
NEEDS = frozenset({"regions", "compile_regions", "symbols", "input_sizes"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion"})
IS_CAUSE = False

#: The watched calls lie at the start, between the blocks and in the profiled windows: sizes that
#: vary show within a few of them.
FEWEST_CALLS = 8
#: Within what a profile is wrong by.
LEAST_SHARE = 0.05
_SIZE = ".size()["
#: How torch names the symbols of sizes and ints; those of floats begin with zf.
_INTEGER = re.compile(r"s\d+")


def check(
    tables: Tables, *, fewest_calls: int = FEWEST_CALLS, least_share: float = LEAST_SHARE
) -> Iterator[Finding]:
    """One finding a torch.compile call."""
    symbols = [row for row in rows(tables, "symbols") if row["source_name"]]
    # Those that the code set to one value are not symbolic any more.
    pinned = {
        (row["compile_key"], source)
        for row in symbols
        if row["event"] == "specialize"
        for source in row["source_name"].split(", ")
    }
    created: dict[object, list[Row]] = defaultdict(list)
    for row in symbols:
        owner = region_of(tables, row["compile_key"])
        integer = _INTEGER.fullmatch(row["symbol"] or "") and row["event"] == "create"
        if owner and integer and (row["compile_key"], row["source_name"]) not in pinned:
            created[owner["pid"], owner["region_id"]].append(row)
    run = {row["compile_id"] for row in rows(tables, "matched_kernels", stance="compiled")}
    for region in first_rank(rows(tables, "regions")):
        met = rows(tables, "input_sizes", pid=region["pid"], region_id=region["region_id"])
        met = sorted(met, key=lambda row: -(row["calls"] or 0))
        own = created[region["pid"], region["region_id"]]
        if not met or (met[0]["calls"] or 0) < fewest_calls:
            continue
        if not all(_SIZE in row["source_name"] for row in own):
            continue
        others = sum(row["calls"] or 0 for row in met[1:])
        ran = [row for row in own if row["compile_id"] in run]
        if region["dynamic"] == "True" and own and not others:
            title = f"dynamic=True for {region['name']}, though its tensors had the same sizes"
            yield _finding(tables, region, _ASKED, title, met, own, least_share)
        elif region["dynamic"] == "None" and ran and others == 1:
            title = (
                f"A call with tensors of {met[1]['sizes']} made {region['name']} run code for any "
                f"size, though they are {met[0]['sizes']}"
            )
            yield _finding(tables, region, _BY_ITSELF, title, met, ran, least_share)


class _Case(NamedTuple):
    why: str
    what_to_do: str
    remedy: str


_ASKED = _Case(
    "The graph is compiled for any size.",
    "Leave dynamic= out and compare. If a size changes one day, torch makes it symbolic by itself, "
    "for one more compile.",
    "dynamic=None",
)
_BY_ITSELF = _Case(
    "torch makes a size symbolic when it meets another one, and tries what it compiled last first.",
    "Make that call in eager or of another compiled copy, or compile with dynamic=False: each "
    "combination of sizes then has code of its own.",
    "dynamic=False",
)


def _finding(
    tables: Tables,
    region: Row,
    case: _Case,
    title: str,
    met: Sequence[Row],
    own: Sequence[Row],
    least_share: float,
) -> Finding:
    """``met``: sizes of calls, most calls first; ``own``: rows of symbols."""
    calls = plural(met[0]["calls"], "call")
    lost = slow(
        tables, {cpp_loops.SYMBOLIC_INDEX}, least_share, {row["compile_key"] for row in own}
    )
    title += f" in {calls}"
    text = "What that costs was not measured: only a run with constant sizes shows it."
    if lost:
        title += f"; its kernels lose {milliseconds(lost.lost_ms)} of a step"
        text = (
            f"Each element of {kernels(lost)} is found by division by symbolic sizes; with "
            "constant sizes there is nothing to divide."
        )
    symbolic = plural(len({row["source_name"] for row in own}), "symbolic size")
    others = f"one with {met[1]['sizes']}" if met[1:] else "no others"
    return Finding(
        code=CODE,
        rule="rc-needless-dynamic",
        severity=severity(tables, lost.lost_ms) if lost else "info",
        title=title,
        explanation=f"{case.why} {text}",
        cost=lost.cost if lost else Cost(about="not measured"),
        confidence="derived",
        location=compile_call(region),
        evidence=(
            Evidence(f"{calls} with {met[0]['sizes']}, {others}", "input_sizes"),
            from_row(f"{symbolic} in its code", "symbols", own[0]),
            *(lost.evidence("by symbolic sizes for each element") if lost else ()),
        ),
        what_to_do=case.what_to_do,
        remedy=(case.remedy,),
        about=about_region(region),
    )

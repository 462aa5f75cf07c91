"""
## What it finds
A generated kernel that takes a good part of the step, moves its bytes at less than 40 % of the
bandwidth that this device reached in a copy, and has too little arithmetic to be the reason.

## Why it costs
A pointwise kernel or a reduction is as fast as memory when it goes through it in order. One that
reads single elements through an index moves 32 bytes for each of them, and no tuning changes that.
Others may have block sizes that do not suit them.

## Evidence
The kernel's bytes as its generated code has them (where they are not known, nothing is said), its
time in the profile, and the copy bandwidth and the arithmetic rate that were measured at the run's
end. Kernels that fit in the cache, templates, scans, sorts and random numbers are not judged. An
exponential or a division is taken for 20 instructions, which rather keeps the rule silent. Loads
through an index are read off the kernel's source. Spilled registers are not recorded.

## What to do
Loads through an index: nothing to tune. Look up whole rows in place of elements, sort the index
where the order is free, so that neighbours are read together, or use a narrower dtype. Others:
`TORCHINDUCTOR_COORDINATE_DESCENT_TUNING=1` times more block sizes, once and while compiling;
compare. If nothing helps, report the kernel upstream with torch's own fx_graph_runnable.

## Settings
- `least_share`: part of the step, 0 to 1, that the kernel must take.
- `most_of_ceiling`: part of the measured bandwidth, 0 to 1, below which it is slow.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- torch/_inductor/config.py, `coordinate_descent_tuning`
- torch/_inductor/runtime/coordinate_descent_tuner.py
- https://github.com/pytorch/pytorch/pull/108193
- https://github.com/pytorch/pytorch/issues/179494
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _costs, _places
from traceview.rules._evidence import from_row
from traceview.rules._rows import Row, first, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding, Location, Snippet
from traceview.tables import Tables
from traceview.torchtext.kernel_source import instructions
from traceview.words.numbers import milliseconds, percent

CODE = "TV405"
NEEDS = frozenset({"kernel_limits", "generated_kernels", "ceilings"})
EXPLAINS = frozenset({"fusion"})
GPU_ONLY = True

#: Less of a step is not worth a look at one kernel.
LEAST_SHARE = 0.10
#: Copies of odd layouts and short rows reach half of the bandwidth; this is far from it.
MOST_OF_CEILING = 0.40
#: Arithmetic that alone fills this part of the kernel's time may be what holds it up.
_MOST_ARITHMETIC = 0.25
_KINDS = ("generated_pointwise", "generated_reduction", "generated_persistent_reduction")


def check(
    tables: Tables, *, least_share: float = LEAST_SHARE, most_of_ceiling: float = MOST_OF_CEILING
) -> Iterator[Finding]:
    """One finding a kernel."""
    step = _costs.step_ms(tables, "compiled")
    for row in first_rank(rows(tables, "kernel_limits", stance="compiled")):
        if not step or not _is_slow(row, most_of_ceiling) or row["ms"] < least_share * step:
            continue
        code = first(
            tables, "generated_kernels", kernel_name=row["name"], compile_id=row["compile_id"]
        )
        if code is not None and _has_time(tables, row, code["source_code"] or ""):
            yield _finding(tables, row, code, row["ms"] / step)


def _is_slow(row: Row, most_of_ceiling: float) -> bool:
    """Far from the bandwidth of memory, with bytes that are known and not in a cache."""
    known = bool(row["bytes"]) and row["bytes_kind"] in ("exact", "at_most")
    judged = row["category"] in _KINDS and row["ceiling"] == "copy" and row["bound"] == "neither"
    return known and judged and bool(row["of_ceiling"]) and row["of_ceiling"] < most_of_ceiling


def _has_time(tables: Tables, row: Row, source: str) -> bool:
    """Whether arithmetic is no reason for the kernel's time; False also where it isn't known."""
    rates = [
        found["value"]
        for found in first_rank(rows(tables, "ceilings", kind="matmul", dtype="float32"))
        if found["unit"] == "TFLOP/s" and "tf32 on" not in (found["detail"] or "")
    ]
    executed = instructions(source)
    if executed is None or not rates or row["dtype"] == "float64":
        return False
    each_ms = executed / (rates[0] / 2 * 1e9)
    return bool(each_ms * row["count"] < _MOST_ARITHMETIC * row["ms"])


def _finding(tables: Tables, row: Row, code: Row, share: float) -> Finding:
    scattered = row["bytes_kind"] == "at_most"
    places = [place for text in code["user_lines"] or () if (place := _place(text))]
    compiles = [
        one for one in rows(tables, "compiles") if one["compile_key"] == code["compile_key"]
    ]
    at_most = "at most " if scattered else ""
    speed = f"{at_most}{percent(row['of_ceiling'])} of the copy bandwidth"
    where = f" at {_places.short(places[0])}" if places else ""
    return Finding(
        code=CODE,
        rule="ind-slow-kernel",
        severity="info",
        title=f"One kernel{where} takes {percent(share)} of a step and reaches {speed}",
        explanation=_SCATTERED if scattered else _IN_ORDER,
        cost=_cost(row, scattered=scattered),
        confidence="derived",
        location=places[0] if places else None,
        about=_places.about(*compiles),
        evidence=tuple(_proof(row, code, at_most)),
        what_to_do=_LOCALITY if scattered else _TUNING,
        snippet=None
        if scattered
        else Snippet("shell", "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING=1 python SCRIPT"),
        also_at=tuple(places[1:4]),
    )


def _cost(row: Row, *, scattered: bool) -> Cost:
    """Nothing is lost where nothing can be gained: then the figures stand in the words only."""
    took, least = milliseconds(row["ms"]), milliseconds(row["floor_ms"])
    if scattered:
        about = f"{took} of a step; its bytes in order would take {least}, which no tuning reaches"
        return Cost(about=about)
    about = f"of {took} in this kernel; its bytes take {least} at the copy bandwidth"
    return Cost(row["ms"] - row["floor_ms"], None, about)


_SCATTERED = (
    "It reads single elements through an index. Memory hands out 32 bytes for each, of which "
    "little is used, and no tuning changes that."
)
_IN_ORDER = (
    "Its arithmetic is too little to be the reason, and it reads at no computed places: its block "
    "sizes or the order in which it goes through memory may not suit it."
)
_LOCALITY = (
    "Nothing to tune. Look up whole rows in place of elements, sort the index where the order is "
    "free, so that neighbours are read together, or use a narrower dtype."
)
_TUNING = (
    "Let torch time more block sizes, once while compiling, and compare. If that does not help, "
    "another layout of the input may; else report the kernel upstream."
)


def _proof(row: Row, code: Row, at_most: str) -> Iterator[Evidence]:
    yield Evidence(
        f"{row['name']}: {at_most}{row['bytes'] / 1e6:,.0f} MB in "
        f"{milliseconds(row['ms'] / row['count'])}, {row['gb_s']:,.0f} GB/s",
        "kernel_limits",
    )
    text = "its code loads through an index" if at_most else "its code loads at no computed place"
    yield from_row(text, "generated_kernels", code)


def _place(text: str) -> Location | None:
    file, _, line = text.rpartition(":")
    return Location(file, int(line)) if line.isdecimal() else None

"""
## What it finds
A generated kernel that takes a good part of the step, moves its bytes at less than 40 % of the
bandwidth that this device reached in a copy, and has too little arithmetic to be the reason. Or one
that adds many values to few places, or divides 64-bit integers by a value that it reads. Or batched
products of tiny matrices (8×8 at most), far from what the device can do. Or a kernel of your own
that takes 30 % or more of the busy time with fewer programs than half of the multiprocessors.

## Why it costs
A pointwise kernel or a reduction is as fast as memory when it reads it in order. One that reads
single elements through an index moves 32 bytes for each of them, and no tuning changes that. Others
may have block sizes that do not suit them. Additions to the same place (`scatter_add`, `index_add`,
the gradient of an embedding) wait for each other. A GPU has no instruction that divides integers:
by a number that stands in the code the compiler multiplies; by one that is read it calls a routine
of about a hundred instructions. A library's kernel is made for large matrices: of a 4×4 product it
fills a corner of a tile, for each matrix of the batch. Inductor leaves batched products to the
library, and nothing fuses with them. A program runs on one multiprocessor: with fewer programs the
others have nothing to do.

## Evidence
The kernel's bytes according to its generated code (the rule is silent where they are not known),
its time in the profile, and the copy bandwidth and the arithmetic rate that were measured at the
run's end. Kernels whose bytes a copy moves within 3 µs, templates, scans, sorts and random numbers
are not judged. An exponential or a division counts as 20 instructions, which makes the rule silent
rather than wrong. Loads through an index are read from the kernel's source. So are atomic additions
and the range that their index is checked for: reported are 100 values or more for a place. And so
are quotients and remainders, each of which counts as 100 instructions. Spilled registers are not
recorded. Programs are the grid of the kernel's largest launch in the profile, which also has the
number of multiprocessors. Kernels below 50 µs have little work and are not reported.

## What to do
Few programs: launch as many as there are multiprocessors or more, one for each row or tile, and let
programs share long rows. Additions: add to several copies of the places, spread by the position of
the value, and sum the copies at the end. Divisions: let the divisor be a Python number in place of
a tensor, or divide 32-bit integers if all values fit. Tiny products: write them as multiply and
sum, which Inductor fuses into one kernel with what is around them. Loads through an index: nothing
to tune. Look up whole rows instead of elements, sort the index where the order does not matter, so
that neighbors are read together, or use a narrower dtype. Others: with
`TORCHINDUCTOR_COORDINATE_DESCENT_TUNING=1` torch times more block sizes, once and while compiling;
compare. If nothing helps, report the kernel upstream with torch's own fx_graph_runnable.

## Settings
- `least_share`: part of the step, 0 to 1, that the kernel must take.
- `most_of_ceiling`: part of the copy bandwidth, 0 to 1, below which it is slow.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- torch/_inductor/config.py, `coordinate_descent_tuning`
- torch/_inductor/decomposition.py, `bmm`
- torch/_inductor/runtime/coordinate_descent_tuner.py
- https://github.com/pytorch/pytorch/pull/108193
- https://github.com/pytorch/pytorch/issues/179494
- https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions
- https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence

import polars as pl

from traceview.derive.limits.ceilings import NEAR_LAUNCH_US, in_tf32
from traceview.json_errors import NOT_JSON
from traceview.rules._gain import at_first, is_starved, locations, slowest_lines
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Severity,
    Snippet,
    Tables,
    about,
    first,
    first_rank,
    frame,
    from_row,
    milliseconds,
    percent,
    plural,
    rows,
    severity,
    step_ms,
)
from traceview.torchtext.kernel_source import instructions, triton_calls
from traceview.torchtext.triton_values import Additions, additions, long_divisions
from traceview.words.numbers import rate

CODE = "TV405"
NEEDS = frozenset({"kernel_limits", "generated_kernels", "ceilings"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion"})
GPU_ONLY = True

#: A kernel that takes less of a step is not worth a look.
LEAST_SHARE = 0.10
#: Copies of odd layouts and short rows reach half of the bandwidth; this is far from it.
MOST_OF_CEILING = 0.40
#: Rows, columns and inner size of a product up to which multiply and sum in one kernel is faster.
MOST_SIZE = 8
#: Part of a ceiling up to which such products are far from it.
FAR_FROM_CEILING = 0.10
#: Values for one place from which additions wait for each other, whatever their order.
LEAST_CROWD = 100
#: Part of the busy time that a kernel with few programs must take: others are not worth a change.
LEAST_BUSY = 0.30
#: A shorter kernel has little work: launching more programs would hardly shorten it.
SHORT_MS = 0.05
#: Instructions of a 64-bit quotient or remainder whose divisor is not known when compiling.
LONG_DIVISION = 100
_ADDING = ("index_add", "scatter_add", "index_put", "scatter_reduce", "embedding_dense_backward")
_DIVIDING = ("remainder", "fmod", "floor_divide", "div")
_BATCHED = {"aten::bmm": 0, "aten::baddbmm": 1}
#: Arithmetic that takes more than this part of the kernel's time may be what makes it slow.
_MOST_ARITHMETIC = 0.25
_KINDS = ("generated_pointwise", "generated_reduction", "generated_persistent_reduction")
_SCATTERED = (
    "It reads single elements through an index. Each read moves 32 bytes, of which little is used, "
    "and no tuning changes that."
)
_IN_ORDER = (
    "Its arithmetic is too little to be the reason, and it reads nothing through an index: its "
    "block sizes or the order in which it reads memory may not suit it."
)
_CROWDED = (
    "Its additions are atomic: those to the same place are made one after the other, in whatever "
    "order threads come."
)
_SPREAD = (
    "Add to many copies of these places, chosen by the position of the value, and sum the copies "
    "at the end: fewer additions meet."
)
_DIVIDED = (
    "A GPU has no instruction for it: by a number that is known when the kernel is compiled it "
    "multiplies, otherwise each value takes about a hundred instructions."
)
_CONSTANT = (
    "Make the divisor a Python number, not a tensor or a buffer. If all values fit, 32-bit "
    "integers are several times faster, too."
)
_ATTRIBUTE = Snippet("python", "self.prime = 2_147_483_647  # not register_buffer(torch.tensor(…))")
_COPIES = Snippet(
    "python",
    "lane = torch.arange(values.shape[0], device=values.device) % 1024\n"
    "sums = values.new_zeros(bins * 1024).index_add(0, index * 1024 + lane, values)\n"
    "sums = sums.view(bins, 1024).sum(1)",
)
_EACH_SM = Snippet(
    "python",
    "device = torch.cuda.get_device_properties(x.device)\n"
    "grid = (min(n_rows, 4 * device.multi_processor_count),)",
)
_LOCALITY = (
    "Nothing to tune. Look up whole rows instead of elements, sort the index where the order does "
    "not matter, so that neighbors are read together, or use a narrower dtype."
)
_TUNING = (
    "Let torch time more block sizes, once while compiling, and compare. If that does not help, "
    "another layout of the input may; otherwise report the kernel upstream."
)

_TINY = (
    "The library's kernel is made for large matrices and neither reads nor computes at the rate of "
    "the device here. Inductor leaves batched products to the library."
)
_SUMMED = (
    "Write the product as multiply and sum: Inductor makes one kernel of it, with what is around "
    "it. In eager this is slower and needs more memory."
)

_AS_SUM = Snippet("python", "(a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)  # a @ b")
_INVERTED = (
    "These products are those of the inverse's gradient. Write the inverse of so small a matrix in "
    "closed form, its adjugate over its determinant: Inductor fuses both it and its gradient."
)
_INVERSE = "aten.linalg_inv_ex"


def check(
    tables: Tables, *, least_share: float = LEAST_SHARE, most_of_ceiling: float = MOST_OF_CEILING
) -> Iterator[Finding]:
    """One finding for each kernel."""
    step = step_ms(tables, "compiled")
    rates = [
        found["value"]
        for found in first_rank(rows(tables, "ceilings", kind="matmul", dtype="float32"))
        if found["unit"] == "TFLOP/s" and found["value"] and not in_tf32(found)
    ]
    copies = [row for row in first_rank(rows(tables, "ceilings", kind="copy")) if row["value"]]
    yield from _tiny_products(tables, step or 0.0, least_share)
    yield from _few_programs(tables, step or 0.0, least_share)
    for row in first_rank(rows(tables, "kernel_limits", stance="compiled")):
        # Far from the bandwidth of memory, with bytes that are known and no matter of a launch.
        known = copies and row["bytes"] and row["bytes_kind"] in ("exact", "at_most")
        if not known or (row["category"] in _KINDS, row["bound"]) != (True, "neither"):
            continue
        copy_ms = row["count"] * row["bytes"] / copies[0]["value"] / 1e6
        if copy_ms < row["count"] * NEAR_LAUNCH_US / 1e3 or copy_ms >= most_of_ceiling * row["ms"]:
            continue
        if not step or row["ms"] < least_share * step:
            continue
        code = first(
            tables, "generated_kernels", kernel_name=row["name"], compile_id=row["compile_id"]
        )
        source = (code and code["source_code"]) or ""
        added = additions(source)
        if code and added and added.values >= LEAST_CROWD * added.places:
            yield _crowded(tables, row, code, added, copy_ms)
            continue
        divisions = long_divisions(source)
        dividing_ms = (
            divisions * row["count"] * LONG_DIVISION / (rates[0] / 2 * 1e9) if rates else 0
        )
        if code and dividing_ms > _MOST_ARITHMETIC * row["ms"]:
            yield _dividing(tables, row, code, divisions, dividing_ms)
            continue
        executed, computed = instructions(source), triton_calls(source)
        double = row["dtype"] == "float64" or (computed is not None and computed.float64)
        if code is None or executed is None or not rates or double:
            continue
        # And arithmetic is no reason for its time.
        each_ms = executed / (rates[0] / 2 * 1e9)
        if each_ms * row["count"] < _MOST_ARITHMETIC * row["ms"]:
            yield _far_from_copy(tables, row, code, copy_ms)


def _tiny_products(tables: Tables, step: float, least_share: float) -> Iterator[Finding]:
    """At most one finding: all batched products of tiny matrices in the compiled step."""
    sizes: dict[int, tuple[int, int, int, int]] = {}  # by operations: batch, rows, inner, columns
    ops = frame(tables, "cpu_ops", stance="compiled").filter(pl.col("name").is_in([*_BATCHED]))
    for name, text in ops.select("name", "input_dims").unique().sort("input_dims").iter_rows():
        try:
            (batch, lines, inner), (_, _, columns) = json.loads(text or "")[_BATCHED[name] :][:2]
            largest, flops = max(lines, inner, columns), int(2 * batch * lines * inner * columns)
        except (*NOT_JSON, TypeError, LookupError):
            continue
        if largest <= MOST_SIZE:
            sizes[flops] = (batch, lines, inner, columns)
    slow = [
        row
        for row in first_rank(rows(tables, "kernel_limits", stance="compiled", category="gemm"))
        if row["flops"] in sizes
        and row["bound"] == "neither"
        and row["floor_ms"] is not None
        and row["floor_ms"] <= FAR_FROM_CEILING * row["ms"]
    ]
    ms, least = (sum(row[key] for row in slow) for key in ("ms", "floor_ms"))
    if not slow or not step or ms < least_share * step:
        return
    ran = first_rank(rows(tables, "matched_kernels", stance="compiled"))
    products = [row for row in ran if row["cpu_op"] in _BATCHED]
    if all("aten.linalg_matrix_exp" in (row["ops"] or ()) for row in products):
        return  # they are its own
    places = slowest_lines(products)
    inverses = slowest_lines(row for row in ran if _INVERSE in (row["ops"] or ()))
    _, lines, inner, columns = sizes[max(slow, key=lambda row: row["ms"])["flops"]]
    where, by_hand = at_first(*places), not set(inverses).intersection(places[:1])
    yield Finding(
        code=CODE,
        rule="ind-slow-kernel",
        severity=severity(tables, ms - least),
        title=(
            f"Products of {lines}×{inner} and {inner}×{columns} matrices{where} take "
            f"{percent(min(1.0, ms / step))} of a step, {percent(least / ms)} of the device's rate"
        ),
        explanation=_TINY,
        cost=Cost(
            ms - least,
            None,
            f"of {milliseconds(ms)}; at the measured ceilings {milliseconds(least)}",
        ),
        confidence="derived",
        location=places[0] if places else None,
        also_at=tuple(places[1:4]),
        evidence=tuple(
            Evidence(
                f"{row['count']:.3g} × batch of {sizes[row['flops']][0]:,}: "
                f"{milliseconds(row['ms'] / row['count'])} each, at least "
                f"{milliseconds(row['floor_ms'] / row['count'])}",
                "kernel_limits",
            )
            for row in slow[:MOST_EVIDENCE]
        ),
        what_to_do=_SUMMED if by_hand else _INVERTED,
        snippet=_AS_SUM if by_hand else None,
    )


def _few_programs(tables: Tables, step: float, least_share: float) -> Iterator[Finding]:
    """One finding for each kernel of the user's that leaves most of the device idle."""
    groups = first_rank(rows(tables, "kernel_groups", category="user_kernel"))
    ran = first_rank(rows(tables, "matched_kernels", category="user_kernel"))
    for row in groups:
        programs, most = row["programs"], row["multiprocessors"]
        if row["stance"] != "compiled" or not (programs and most and row["ms"] and row["count"]):
            continue
        each = row["ms"] / row["count"]
        if 2 * programs >= most or row["share"] < LEAST_BUSY or each < SHORT_MS:
            continue
        if not step or row["ms"] < least_share * step or is_starved(tables):
            continue
        # A custom operator's kernel may be one of CUDA C++.
        unit = "block" if "::" in (row["cpu_op"] or "") else "program"
        lines: dict[Location, float] = {}
        for one in ran:
            if one["name"] == row["name"] and one["file"] and one["line"] is not None:
                place = Location(one["file"], one["line"])
                lines[place] = lines.get(place, 0.0) + one["ms"]
        places = sorted(lines, key=lambda place: -lines[place])
        where = at_first(*places)
        idle = percent(1 - programs / most)
        yield Finding(
            code=CODE,
            rule="ind-slow-kernel",
            severity="warning",
            title=(
                f"Kernel {row['name']}{where} takes {percent(row['share'])} of the busy time with "
                f"{plural(programs, unit)} on {most} multiprocessors"
            ),
            explanation=(
                f"A {unit} runs on one multiprocessor: {idle} of the device has nothing to do "
                "while this kernel runs, in whatever way the rest is compiled."
            ),
            cost=Cost(
                about=f"{milliseconds(row['ms'])} of a step in this kernel, {idle} of the device "
                "idle meanwhile"
            ),
            confidence="measured",
            location=places[0] if places else None,
            also_at=tuple(places[1:4]),
            evidence=tuple(
                Evidence(
                    f"{one['stance']}: {one['count']:.3g} × "
                    f"{milliseconds(one['ms'] / one['count'])}, "
                    f"{plural(one['programs'], unit)}, "
                    f"{percent(one['share'])} of the busy time",
                    "kernel_groups",
                )
                for one in groups
                if one["name"] == row["name"] and one["programs"] and one["ms"] and one["count"]
            ),
            what_to_do=(
                f"Launch {most} {unit}s or more: one for each row or tile, or, where {unit}s loop "
                "over rows, as many as the device has multiprocessors, times what fits on one. "
                f"Where rows are few and long, let several {unit}s share one."
            ),
            snippet=_EACH_SM if unit == "program" else None,
            due_ms=0.0,
        )


def _lines(tables: Tables, code: Row, operators: Collection[str]) -> list[Location]:
    """The kernel's lines, those first where eager calls one of these operators."""
    known = locations(code["user_lines"] or ())
    eager = first_rank(rows(tables, "matched_kernels", stance="eager"))
    called = [
        Location(one["file"], one["line"])
        for one in sorted(eager, key=lambda one: -(one["ms"] or 0.0))
        if (one["cpu_op"] or "").removeprefix("aten::").rstrip("_") in operators
    ]
    return list(dict.fromkeys([*(place for place in called if place in known), *known]))


def _crowded(tables: Tables, row: Row, code: Row, added: Additions, copy_ms: float) -> Finding:
    places = _lines(tables, code, _ADDING)
    where = at_first(*places)
    lost = row["ms"] - copy_ms
    return _finding(
        tables,
        row,
        code,
        places,
        severity=severity(tables, lost),
        title=(
            f"{added.values:,} values are added to {added.places:,} places{where}: "
            f"{_share(tables, row)} of a step, {percent(copy_ms / row['ms'])} of the copy bandwidth"
        ),
        explanation=_CROWDED,
        cost=Cost(
            lost,
            None,
            f"of {milliseconds(row['ms'])}; its bytes take {milliseconds(copy_ms)} at the copy "
            "bandwidth",
        ),
        shown="its code adds with tl.atomic_add",
        what_to_do=_SPREAD,
        snippet=_COPIES,
    )


def _dividing(tables: Tables, row: Row, code: Row, divisions: int, dividing_ms: float) -> Finding:
    places = _lines(tables, code, _DIVIDING)
    where = at_first(*places)
    lost = min(dividing_ms, row["ms"])
    return _finding(
        tables,
        row,
        code,
        places,
        severity=severity(tables, lost),
        title=f"64-bit division{where} by a value that is read: {_share(tables, row)} of a step",
        explanation=_DIVIDED,
        cost=Cost(
            lost, None, f"of {milliseconds(row['ms'])}, at {LONG_DIVISION} instructions each"
        ),
        shown=f"its code makes {divisions:,} of them",
        what_to_do=_CONSTANT,
        snippet=_ATTRIBUTE,
    )


def _far_from_copy(tables: Tables, row: Row, code: Row, copy_ms: float) -> Finding:
    places = locations(code["user_lines"] or ())
    scattered, at_most = row["bytes_kind"] == "at_most", _at_most(row)
    where = at_first(*places)
    took, least = milliseconds(row["ms"]), milliseconds(copy_ms)
    if scattered:  # nothing is lost where nothing can be gained
        cost = Cost(about=f"{took} of a step; in order its bytes would take {least}")
    else:
        text = f"of {took} in this kernel; its bytes take {least} at the copy bandwidth"
        cost = Cost(row["ms"] - copy_ms, None, text)
    return _finding(
        tables,
        row,
        code,
        places,
        severity="info",
        title=(
            f"One kernel{where} takes {_share(tables, row)} of a step and reaches {at_most}"
            f"{percent(copy_ms / row['ms'])} of the copy bandwidth"
        ),
        explanation=_SCATTERED if scattered else _IN_ORDER,
        cost=cost,
        shown=f"its code loads {'through an index' if scattered else 'nothing through an index'}",
        what_to_do=_LOCALITY if scattered else _TUNING,
        remedy=() if scattered else ("torch._inductor.config.coordinate_descent_tuning=True",),
        snippet=None
        if scattered
        else Snippet("shell", "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING=1 python SCRIPT"),
    )


def _at_most(row: Row) -> str:
    return "at most " if row["bytes_kind"] == "at_most" else ""


def _share(tables: Tables, row: Row) -> str:
    """What the kernel takes of a step; the profiled one may have been longer than those timed."""
    return percent(min(1.0, row["ms"] / (step_ms(tables, "compiled") or row["ms"])))


def _finding(
    tables: Tables,
    row: Row,
    code: Row,
    places: Sequence[Location],
    *,
    title: str,
    severity: Severity,
    explanation: str,
    cost: Cost,
    shown: str,
    what_to_do: str,
    snippet: Snippet | None,
    remedy: tuple[str, ...] = (),
) -> Finding:
    """About one generated kernel; ``shown`` is what its code shows."""
    moved = f"{row['bytes'] / 1e6:,.0f} MB in {milliseconds(row['ms'] / row['count'])}"
    return Finding(
        code=CODE,
        rule="ind-slow-kernel",
        severity=severity,
        title=title,
        explanation=explanation,
        cost=cost,
        confidence="derived",
        location=places[0] if places else None,
        about=about(*rows(tables, "compiles", compile_key=code["compile_key"])),
        evidence=(
            Evidence(
                f"{row['name']}: {_at_most(row)}{moved}, {rate(row['gb_s'], 'GB/s')}",
                "kernel_limits",
            ),
            from_row(shown, "generated_kernels", code),
        ),
        what_to_do=what_to_do,
        remedy=remedy,
        snippet=snippet,
        also_at=tuple(places[1:4]),
    )

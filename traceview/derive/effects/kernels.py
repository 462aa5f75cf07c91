"""Kernels (on a CPU: operators) of both stances, their time on the step as timed.

On a CPU part of that is memory touched for the first time: an operator that writes into memory
which the process was just given waits for the operating system at every page. Allocators ask for
such memory again and again where large tensors come and go, and fused kernels need fewer of them.
How many pages that were is counted, in the timed blocks and in the profiled window; what one takes
was measured when the script had ended. Which operators they fell to is not recorded: first the time
goes that operators take above the limit of the machine, then the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from traceview.derive.effects.parts import OTHER_KERNELS, PAGE_FAULTS, Part
from traceview.derive.limits.ceilings import ceilings_of
from traceview.tables import Tables

Row = dict[str, Any]
STANCES = ("eager", "compiled")
#: Milliseconds below which a remainder is the rounding of floating point.
ROUNDING = 1e-9
#: Fewer faults a step come from whatever grows now and then.
_FEWEST = 1.0


class Kernel(msgspec.Struct, frozen=True):
    """A row of ``matched_kernels``; ``ms`` is on the step as timed, as in ``accounting``.

    ``backward``: of an eager kernel, that its line is known by its forward; ``work``: shape, dtype
    and layout of a library's.
    """

    stance: str
    group_id: int | None
    name: str
    category: str
    operator: str
    file: str | None
    line: int | None
    backward: bool
    compile_key: tuple[str | None, str | None]
    ops: frozenset[str]
    nodes: frozenset[str]
    count: float
    ms: float
    clock: str
    work: tuple[str | None, str | None, str | None] = (None, None, None)


def timed_kernels(matched: Sequence[Row], accounts: Sequence[Row]) -> list[Kernel]:
    """``matched`` (rows of one pass and rank) with the accounting's time.

    The accounting counts overlapping kernels once and, on a CPU, takes the profiler's cost out of
    them: all kernels of one category carry that in proportion to their time. Kernels that
    ``matched`` lacks are left to ``not_listed``.
    """
    own: dict[tuple[str, str], float] = defaultdict(float)
    for row in matched:
        own[row["stance"], row["category"]] += row["ms"] or 0.0
    # (stance, category) → the accounting's ms for one ms of the kernels' own.
    scale = {}
    for row in accounts:
        key = (row["stance"], row["category"])
        whole = max(own[key], row["profiled_ms"] or 0.0)
        if row["kind"] == "busy" and whole > 0.0:
            scale[key] = row["ms"] / whole
    return [
        Kernel(
            stance=row["stance"],
            group_id=row["group_id"],
            name=row["name"],
            category=row["category"],
            operator=row["cpu_op"] or row["name"],
            file=row["file"],
            line=row["line"],
            backward=row["how"] == "forward",
            compile_key=(row["compile_id"], row["aot_id"]),
            ops=frozenset(row["ops"] or ()),
            nodes=frozenset(row["source_nodes"] or ()),
            count=row["count"] or 0.0,
            ms=row["ms"] * scale[row["stance"], row["category"]],
            clock=row["clock"] or "host",
            work=(row["shape"], row["dtype"], row["layout"]),
        )
        for row in matched
        if row["ms"] is not None and (row["stance"], row["category"]) in scale
    ]


def not_listed(kernels: Sequence[Kernel], accounts: Sequence[Row]) -> list[Part]:
    """Busy time of the accounting that no row of ``kernels`` stands for, by category."""
    left: dict[str, dict[str, float]] = defaultdict(dict)
    clocks = {}
    for row in accounts:
        if row["kind"] == "busy":
            left[row["category"]][row["stance"]] = row["ms"]
            clocks[row["category"]] = row["clock"]
    for kernel in kernels:
        left[kernel.category][kernel.stance] -= kernel.ms
    parts = []
    for category, sides in left.items():
        both = (sides.get(stance, 0.0) for stance in STANCES)
        eager, compiled = (ms if abs(ms) > ROUNDING else None for ms in both)
        if eager is not None or compiled is not None:
            times, clock = (eager, compiled), clocks[category]
            parts.append(Part.of(OTHER_KERNELS, category, times, clock, derived=False))
    return parts


def without_page_faults(
    kernels: Sequence[Kernel], counts: Mapping[str, Row], tables: Tables
) -> tuple[list[Kernel], list[Part]]:
    """``kernels`` less what page faults take of them, and that as a part.

    ``counts`` has the row of ``step_counts`` for each stance. Where faults were not counted, or
    what one takes was not measured, everything stays as it is.
    """
    head = counts.get(STANCES[0], {})
    cost = ceilings_of(tables, head.get("pass", ""), head.get("rank"), "cpu").fault_us
    # Faults a step that both the timed blocks and the profiled window have.
    faults: dict[str, float] = {}
    for stance in STANCES:
        row = counts.get(stance, {})
        timed, profiled = row.get("page_faults"), row.get("profiled_page_faults")
        if timed is not None and profiled is not None:
            faults[stance] = min(timed, profiled)
    if cost is None or len(faults) < len(STANCES) or max(faults.values()) < _FEWEST:
        return list(kernels), []
    # (stance, name) → the part of its time that an operator needs at the limits of the machine.
    whole: dict[tuple[str, str], float] = defaultdict(float)
    floor: dict[tuple[str, str], float] = defaultdict(float)
    for row in tables["kernel_limits"].iter_rows(named=True):
        if (row["pass"], row["rank"]) == (head["pass"], head["rank"]) and row["ms"]:
            key = (row["stance"], row["name"])
            whole[key] += row["ms"]
            floor[key] += min(row["floor_ms"] or 0.0, row["ms"])
    floors = {key: floor[key] / ms for key, ms in whole.items()}
    left: list[Kernel] = []
    taken: dict[str, float] = {}
    for stance, count in faults.items():
        mine = [kernel for kernel in kernels if kernel.stance == stance]
        needed = [k.ms * floors.get((k.stance, k.name), 0.0) for k in mine]
        ms, above = count * cost / 1e3, sum(k.ms for k in mine) - sum(needed)
        some = min(1.0, ms / above) if above > 0.0 else 0.0
        more = min(1.0, max(0.0, ms - above) / sum(needed)) if sum(needed) > 0.0 else 0.0
        both = list(zip(mine, needed, strict=True))
        gone = [some * (kernel.ms - least) + more * least for kernel, least in both]
        taken[stance] = sum(gone)
        left += (replace(k, ms=k.ms - own) for k, own in zip(mine, gone, strict=True))
    shown = " → ".join(f"{faults[stance]:,.0f}" for stance in STANCES)
    what = f"pages touched for the first time: {shown}, {cost:.2g} µs each"
    times = (taken["eager"] or None, taken["compiled"] or None)
    return left, [Part.of(PAGE_FAULTS, what, times, "host", derived=True)]

"""Time in which no kernel ran (on a CPU: no operator that works) as parts of effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from traceview.derive import causes
from traceview.derive.effects.parts import (
    CUDAGRAPHS,
    LAUNCHES,
    OTHER_IDLE,
    OVERHEADS,
    Part,
    Times,
)
from traceview.words.numbers import count

Row = dict[str, Any]
#: What only a compiled step has: evaluating guards, wrappers, Python between its parts.
_OVERHEADS = frozenset(
    (
        *(causes.GUARDS, causes.CALL_OVERHEAD, causes.GRAPH_BREAK, causes.COMPILE),
        *(causes.RECORDING, causes.HOST_GRAPH_BREAK, causes.HOST_COMPILE),
    )
)
#: What it costs to get from one operator to the next, apart from a device's wait for launches:
#: Python, and on a CPU operators that only arrange or dispatch.
_DISPATCH = frozenset({"other", causes.PYTHON, causes.OTHER_PYTHON})
#: Python between operators, and between the compiled parts of one call.
_PYTHON = frozenset(
    {causes.PYTHON, causes.OTHER_PYTHON, causes.GRAPH_BREAK, causes.HOST_GRAPH_BREAK}
)


def idle_parts(
    accounts: Sequence[Row], details: Sequence[Row], counts: Mapping[str, Row]
) -> Iterator[Part]:
    """Parts of everything in ``accounts`` (one pass and rank) that is neither busy nor unexplained.

    ``details`` are the rows of ``account_details`` behind them, ``counts`` has the row of
    ``step_counts`` for each stance.
    """
    sides: dict[str, dict[str, float]] = {}
    rows = {}
    for row in accounts:
        if row["kind"] not in ("busy", "unexplained"):
            sides.setdefault(row["category"], {})[row["stance"]] = row["ms"]
            rows[row["category"]] = row
    # What eager spends on a line between operators, the compiled step may spend on it between two
    # graphs: it is the script's own Python, whatever the category is called.
    lines: dict[tuple[str, int], list[Row]] = {}
    for row in details:
        if row["category"] in _PYTHON and row["file"] is not None and row["ms"] is not None:
            lines.setdefault((row["file"], row["line"]), []).append(row)
    for (file, number), line in lines.items():
        if len({row["stance"] for row in line}) < 2:
            continue
        for row in line:
            sides[row["category"]][row["stance"]] -= row["ms"]
        times = (
            sum(row["ms"] for row in line if row["stance"] == "eager"),
            sum(row["ms"] for row in line if row["stance"] == "compiled"),
        )
        part = Part.of(OTHER_IDLE, "Python", times, line[0]["clock"], derived=False)
        yield replace(part, file=file, line=number)
    for category, ms in sides.items():
        eager, compiled = ms.get("eager"), ms.get("compiled")
        if not (eager or compiled):
            continue
        row = rows[category]
        if category == causes.LAUNCH_BOUND:
            yield from _launches((eager, compiled), counts)
            continue
        effect = LAUNCHES if category in _DISPATCH else OTHER_IDLE
        if category == causes.IN_GRAPH:
            effect = CUDAGRAPHS
        elif row["kind"] == "overhead" or category in _OVERHEADS:
            effect = OVERHEADS
        yield Part.of(effect, category, (eager, compiled), row["clock"], derived=False)


def _launches(times: Times, counts: Mapping[str, Row]) -> Iterator[Part]:
    """Idle time while the host was launching: what fewer launches saved, what replaying did.

    Where cudagraphs replay, launches went from as many as eager has to one for each compiled
    kernel, and from there to those that are left; the time saved is shared by these two numbers.
    """
    before, after = (counts.get(stance, {}) for stance in ("eager", "compiled"))
    numbers = before.get("launches"), after.get("kernels"), after.get("launches")
    launched, kernels, left = (number or 0.0 for number in numbers)
    whole = Part.of(LAUNCHES, causes.LAUNCH_BOUND, times, "device", derived=False)
    if not after.get("graph_launches") or None in numbers or kernels <= left:
        yield whole
        return
    by_replay = (kernels - left) / (max(launched, kernels) - left)
    if by_replay < 1.0:
        what = f"{count(launched)} launches, {count(kernels)} without cudagraphs"
        yield Part(LAUNCHES, what, whole.ms * (1 - by_replay), None, None, "device", derived=True)
    what = f"{count(kernels)} kernels by {count(left)} launches"
    yield Part(CUDAGRAPHS, what, whole.ms * by_replay, None, None, "device", derived=True)

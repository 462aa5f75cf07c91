"""Memory touched for the first time: what page faults take of a CPU's operators.

An operator that writes into memory which the process was just given waits for the operating system
at every page. Allocators ask for such memory again and again where large tensors come and go, and
fused kernels need fewer of them. How many pages that were is counted, in the timed blocks and in
the profiled window; what one takes was measured when the script had ended. Which operators they
fell to is not recorded: first the time goes that operators take above the limit of the machine,
then the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from traceview.derive.effects.kernels import STANCES, Kernel
from traceview.derive.effects.parts import PAGE_FAULTS, Part, difference
from traceview.derive.limits.ceilings import ceilings_of
from traceview.tables import Tables

Row = dict[str, Any]
_HOST, _DEVICE = "host", "cpu"
#: Fewer a step come from whatever grows now and then.
_FEWEST = 1.0


def without_page_faults(
    kernels: Sequence[Kernel], counts: Mapping[str, Row], tables: Tables
) -> tuple[list[Kernel], list[Part]]:
    """``kernels`` less what page faults take of them, and that as a part.

    ``counts`` has the row of ``step_counts`` for each stance. Where faults were not counted, or
    what one takes was not measured, everything stays as it is.
    """
    head = counts.get(STANCES[0], {})
    cost = ceilings_of(tables, head.get("pass", ""), head.get("rank"), _DEVICE).fault_us
    known = {stance: _faults(counts.get(stance, {})) for stance in STANCES}
    faults = {stance: count for stance, count in known.items() if count is not None}
    if cost is None or len(faults) < len(STANCES) or max(faults.values()) < _FEWEST:
        return list(kernels), []
    floors = _floors(tables, head)
    left: list[Kernel] = []
    ms: dict[str, float] = {}
    for stance, count in faults.items():
        mine = [kernel for kernel in kernels if kernel.stance == stance]
        ms[stance], freed = _freed(mine, count * cost / 1e3, floors)
        left += freed
    said = " → ".join(f"{faults[stance]:,.0f}" for stance in STANCES)
    what = f"pages touched for the first time: {said}, {cost:.2g} µs each"
    eager, compiled = (ms[stance] or None for stance in STANCES)
    change = difference(eager, compiled)
    return left, [Part(PAGE_FAULTS, what, change, eager, compiled, _HOST, derived=True)]


def _faults(count: Row) -> float | None:
    """Faults a step that both the timed blocks and the profiled window have."""
    timed, profiled = count.get("page_faults"), count.get("profiled_page_faults")
    return None if timed is None or profiled is None else min(timed, profiled)


def _floors(tables: Tables, head: Row) -> dict[tuple[str, str], float]:
    """(stance, name) → the part of its time that an operator needs at the limits of the machine."""
    ms: dict[tuple[str, str], float] = defaultdict(float)
    floor: dict[tuple[str, str], float] = defaultdict(float)
    for row in tables["kernel_limits"].iter_rows(named=True):
        if (row["pass"], row["rank"]) == (head["pass"], head["rank"]) and row["ms"]:
            key = (row["stance"], row["name"])
            ms[key] += row["ms"]
            floor[key] += min(row["floor_ms"] or 0.0, row["ms"])
    return {key: floor[key] / whole for key, whole in ms.items()}


def _freed(
    kernels: Sequence[Kernel], ms: float, floors: Mapping[tuple[str, str], float]
) -> tuple[float, list[Kernel]]:
    """(what ``kernels`` of one stance have of ``ms``, these kernels without it)."""
    needed = [k.ms * floors.get((k.stance, k.name), 0.0) for k in kernels]
    above = sum(k.ms for k in kernels) - sum(needed)
    some = min(1.0, ms / above) if above > 0.0 else 0.0
    more = min(1.0, max(0.0, ms - above) / sum(needed)) if sum(needed) > 0.0 else 0.0
    taken = [
        some * (kernel.ms - least) + more * least
        for kernel, least in zip(kernels, needed, strict=True)
    ]
    freed = [
        replace(kernel, ms=kernel.ms - gone) for kernel, gone in zip(kernels, taken, strict=True)
    ]
    return sum(taken), freed

"""Graph breaks, gathered by the line that they happen at."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from traceview.rules import _costs, _places
from traceview.rules._evidence import MOST_EVIDENCE, from_row, short, times
from traceview.rules._rows import Row, first, rows
from traceview.rules.finding import Confidence, Cost, Evidence, Location, Severity
from traceview.tables import Tables

#: torch's ids (torch/_dynamo/graph_break_registry.json): Tensor.item() and what calls it.
ITEM = frozenset({"GB0124"})
DATA_DEPENDENT = frozenset({"GB0170", "GB0035", "GB0034"})
LOGGING = frozenset({"GB0291", "GB0296"})
#: Builtins that Dynamo cannot trace because they talk to the outside: GB0059 names them.
_IO_BUILTIN = re.compile(
    r"builtin operator `?(print|open|input|breakpoint)\b|builtin: (print|open)\b"
)
_IO_CALL = re.compile(r"\b(warnings\.warn|logging|builtins\.(print|open|input)|_io\.)")

#: What the cost of a break is, in words.
GAP = "host time between compiled regions, as profiled; lost fusion comes on top"

Kind = Callable[[Row], bool]


def is_item(row: Row) -> bool:
    """A tensor's value is turned into a Python number."""
    return row["gb_id"] in ITEM or "Tensor.item" in (row["gb_type"] or "")


def is_data_dependent(row: Row) -> bool:
    """Control flow depends on a tensor's value."""
    kind = row["gb_type"] or ""
    return row["gb_id"] in DATA_DEPENDENT or kind.startswith("Data-dependent")


def is_io(row: Row) -> bool:
    """print, open, logging, warnings: something outside the graph."""
    if row["gb_id"] in LOGGING:
        return True
    text = " ".join(filter(None, (row["gb_type"], row["explanation"], row["context"])))
    return bool(_IO_BUILTIN.search(text) or _IO_CALL.search(text))


@dataclass(frozen=True, slots=True)
class Site:
    """One line where graphs break: its rows (never empty) and its place, where recorded."""

    rows: tuple[Row, ...]
    place: Location | None

    @property
    def source(self) -> str | None:
        return next(filter(None, map(_places.source_text, self.rows)), None)

    @property
    def skipped(self) -> bool:
        return any(row["frame_skipped"] for row in self.rows)

    def evidence(self) -> tuple[Evidence, ...]:
        """One row a different message; how often it stands in the log."""
        seen: dict[str, list[Row]] = {}
        for row in self.rows:
            seen.setdefault(short(row["gb_type"] or row["reason"]), []).append(row)
        return tuple(
            from_row(_said(message, found), "graph_breaks", found[0])
            for message, found in list(seen.items())[:MOST_EVIDENCE]
        )


def sites(tables: Tables, kind: Kind = lambda _: True) -> Iterator[Site]:
    """The user's own lines where breaks of ``kind`` happened; torch's own lines are left out."""
    found: dict[tuple[str | None, int | None], list[Row]] = {}
    for row in rows(tables, "graph_breaks"):
        if kind(row):
            found.setdefault((row["user_file"], row["user_line"]), []).append(row)
    for group in found.values():
        place = _places.user(group[0])
        if not _places.in_torch(place):
            yield Site(tuple(group), place)


def resumable(tables: Tables, kind: Kind = lambda _: True) -> Iterator[Site]:
    """Sites of ``kind`` where Python resumed after the graph (skipped frames: another rule)."""
    return (site for site in sites(tables, kind) if not site.skipped)


def severity(tables: Tables, cost: Cost) -> Severity:
    """As ``_costs.severity``; info too where nothing ran compiled behind it and nothing was lost.

    Then there is no graph that it could have been fused with.
    """
    if gap_ms(tables) == 0 and _costs.outcome(tables) in ("helped", "neutral"):
        return "info"
    return _costs.severity(tables, cost.ms_per_step)


def effect(tables: Tables) -> str:
    """What a break does to the graph: there is a second part only where more ran compiled."""
    return "ends the graph" if gap_ms(tables) == 0 else "cuts the graph in two"


def gap_ms(tables: Tables) -> float | None:
    """Host time between the compiled regions of a step, on the scale of the timed step.

    The profiler stretches short steps, so what it saw is scaled by timed over profiled step.
    """
    counts = first(tables, "step_counts", stance="compiled")
    if counts is None or counts["gap_ms"] is None:
        return None
    profiled, timed = counts["step_ms"], _costs.step_ms(tables, "compiled")
    scale = min(1.0, timed / profiled) if profiled and timed else 1.0
    return float(counts["gap_ms"]) * scale


def gap_cost(tables: Tables) -> tuple[Cost, Confidence]:
    """One site's part of the host time between compiled regions, shared evenly by all sites."""
    gap = gap_ms(tables)
    if gap is None:
        return Cost(about="host time between compiled regions: not measured"), "heuristic"
    if not gap:
        about = "nothing more ran compiled after it in the profiled steps, so no gap was measured"
        return Cost(about=about), "heuristic"
    sharing = sum(1 for _ in sites(tables)) or 1
    about = GAP
    if sharing > 1:
        about += f", shared evenly by {sharing} places"
    return Cost(ms_per_step=gap / sharing, about=about), "measured" if sharing == 1 else "derived"


def _said(message: str, found: list[Row]) -> str:
    gb_id = next(filter(None, (row["gb_id"] for row in found)), None)
    name = f"{gb_id}: " if gb_id else ""
    return f"{name}{message} ({times(len(found))} in the log)"

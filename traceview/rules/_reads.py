"""Places that read values from the GPU in every step, and what the step would take without them."""

from __future__ import annotations

from typing import NamedTuple

from traceview.rules import _costs
from traceview.rules._rows import Row, first_rank, rows
from traceview.tables import Tables

#: Reads in fewer steps than these are what the rule asks for.
LEAST_READS = 0.5


class Place(NamedTuple):
    """Lines of table ``host_reads`` that are one place of ``read_replays``; ms of a step."""

    lines: list[Row]
    cost_ms: float
    without_ms: float


def places(tables: Tables) -> list[Place]:
    """The places, dearest first; lines where a graph breaks are other rules'."""
    broken = {(row["user_file"], row["user_line"]) for row in rows(tables, "graph_breaks")}
    reads = [
        row
        for row in first_rank(rows(tables, "host_reads", stance="compiled"))
        if row["scalars"] + row["tensors"] >= LEAST_READS
        and row["asks"]
        and (row["file"], row["line"]) not in broken
    ]
    found = []
    for replay in first_rank(rows(tables, "read_replays", stance="compiled")):
        lines = [row for row in reads if _is_of(replay, row)]
        if lines and replay["step_ms"]:
            found.append(_place(tables, replay, lines))
    return sorted(found, key=lambda place: -place.cost_ms)


def _is_of(replay: Row, row: Row) -> bool:
    at: int = row["line"]
    here: bool = replay["line"] <= at <= replay["last_line"]
    return replay["file"] == row["file"] and here


def _place(tables: Tables, replay: Row, lines: list[Row]) -> Place:
    """The replay's figures, in proportion to the step as timed."""
    step = _costs.step_ms(tables, "compiled") or replay["step_ms"]
    without = replay["without_ms"] * step / replay["step_ms"]
    return Place(lines, step - without, without)

"""What the compiler did: timeline, recompile chains, graph break sites, compile seconds."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from traceview.derive.compile_costs import PHASES, exclusive_phases
from traceview.derive.processes import main_processes
from traceview.derive.speedup import compile_seconds
from traceview.diagnosis.focus import Focus, struct_of
from traceview.diagnosis.model import (
    CompileRow,
    CompileTime,
    GraphBreakSite,
    RecompileChain,
    RecompileLink,
)
from traceview.tables import Tables

MOST_COMPILES = 400
MOST_LINKS = 60
MOST_CHAINS = 60
MOST_SITES = 200
TEXT_CHARACTERS = 2000

Row = dict[str, Any]


def cut(text: str | None, most: int = TEXT_CHARACTERS) -> str | None:
    """``text`` without what a report has no room for."""
    return text if text is None or len(text) <= most else text[:most] + " …"


def compile_time(tables: Tables, focus: Focus) -> CompileTime:
    """Cold and warm compile seconds, with exclusive phases by frame."""
    speed = focus.first(tables["speedups"])
    warm = next(iter(main_processes(tables, "warm")), None)
    costs = focus.rows(tables["compile_costs"])
    names = ("co_name", "co_filename", "co_firstlineno", "compiles", "total_s", *PHASES)
    frames = sorted(costs, key=lambda row: -row["total_s"])
    totals = {name: sum(row[name] for row in costs) for name in PHASES} if costs else {}
    return CompileTime(
        seconds=speed.get("compile_s", sum(totals.values()) if totals else None),
        warm_seconds=compile_seconds(tables, warm) if warm else None,
        phases=totals,
        frames=tuple({name: row[name] for name in names} for row in frames[:MOST_COMPILES]),
        first_call_ms=speed.get("first_call_ms"),
    )


def timeline(tables: Tables, focus: Focus) -> tuple[CompileRow, ...]:
    """Every compile in order of start; ``started_s`` counts from the process's start, if known."""
    rows = sorted(focus.rows(tables["compiles"]), key=lambda row: row["started_us"] or 0.0)
    starts = [row["started_us"] for row in rows if row["started_us"] is not None]
    zero = focus.first(tables["runs"]).get("started_us") or min(starts, default=0.0)
    return tuple(_compile_row(row, zero) for row in rows[:MOST_COMPILES])


def _compile_row(row: Row, zero_us: float) -> CompileRow:
    started, duration = row["started_us"], row["duration_us"]
    backward = " (backward)" if row["is_forward"] is False else ""
    return CompileRow(
        compile_id=row["compile_id"] or "?",
        name=(row["co_name"] or "?") + backward,
        file=row["co_filename"],
        line=row["co_firstlineno"],
        outcome=row["outcome"] or "unfinished",
        started_s=None if started is None else (started - zero_us) / 1e6,
        seconds=None if duration is None else duration / 1e6,
        phases=exclusive_phases(row),
        ops=row["graph_op_count"],
        guards=row["guard_count"],
        reason=cut(row["fail_reason"] or row["recompile_reason"]),
    )


def recompile_chains(tables: Tables, focus: Focus) -> tuple[RecompileChain, ...]:
    """Per function, its recompiles in order: the guard that decided each one, old → new."""
    compiles = focus.rows(tables["compiles"])
    by_key = {row["compile_key"]: row for row in compiles if row["is_forward"] is not False}
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in focus.rows(tables["recompile_causes"]):
        groups[row["co_name"], row["co_filename"], row["co_firstlineno"]].append(row)
    per_function = Counter(_code(row) for row in by_key.values())
    limited = {_code(row) for row in compiles if row["outcome"] == "limit"}
    chains = [
        RecompileChain(
            name=code[0] or "?",
            file=code[1],
            line=code[2],
            compiles=per_function[code] or len(rows) + 1,
            limit_hit=code in limited,
            links=tuple(_link(row, by_key) for row in rows[:MOST_LINKS]),
        )
        for code, rows in groups.items()
    ]
    return tuple(sorted(chains, key=lambda chain: -len(chain.links))[:MOST_CHAINS])


def _code(row: Row) -> tuple[Any, ...]:
    return row["co_name"], row["co_filename"], row["co_firstlineno"]


def _link(row: Row, by_key: dict[str, Row]) -> RecompileLink:
    duration = by_key.get(row["compile_key"], {}).get("duration_us")
    return struct_of(
        RecompileLink,
        row,
        guard=cut(row["guard"]) or "",
        old=cut(row["old"], 200),
        new=cut(row["new"], 200),
        seconds=None if duration is None else duration / 1e6,
    )


def break_sites(tables: Tables, focus: Focus) -> tuple[GraphBreakSite, ...]:
    """Graph breaks by the user's line and torch's reason, most frequent first.

    Among them are those that ``fullgraph=True`` makes errors.
    """
    found = []
    for row in sorted(focus.rows(tables["break_sites"]), key=lambda row: -row["times"]):
        refused = "fullgraph=True made it an error." if row["refused"] else None
        site = GraphBreakSite(
            file=row["file"],
            line=row["line"],
            function=row["function"],
            gb_id=row["gb_id"],
            reason=cut(row["gb_type"] or (row["reason"] or "").split("\n", 1)[0]) or "",
            explanation=cut(" ".join(filter(None, (refused, row["explanation"])))) or None,
            hints=tuple(row["hints"] or ()),
            times=row["times"],
            frame_skipped=row["frame_skipped"],
        )
        found.append(site)
    return tuple(found[:MOST_SITES])

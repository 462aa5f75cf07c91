"""What the compiler did: timeline, recompile chains, graph break sites, compile seconds."""

from __future__ import annotations

from collections import Counter

import polars as pl

from traceview.derive.compile_costs import PHASES, exclusive_phases
from traceview.derive.processes import main_processes
from traceview.derive.speedup import compile_seconds
from traceview.diagnosis.focus import Focus, code_of, cut, struct_of
from traceview.diagnosis.model import (
    CompileRow,
    CompileTime,
    GraphBreakSite,
    RecompileChain,
    RecompileLink,
)
from traceview.tables import Tables, grouped

MOST_COMPILES = 400
MOST_LINKS = 60
MOST_CHAINS = 60
MOST_SITES = 200
#: What the name of a backward's compile ends in.
BACKWARD = " (backward)"
TEXT_CHARACTERS, VALUE_CHARACTERS = 2000, 200
#: What chains need of table ``compiles``, which has some fifty columns.
_OF_CHAINS = (
    *("compile_key", "is_forward", "outcome", "duration_us"),
    *("co_name", "co_filename", "co_firstlineno"),
)


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
    compiles = focus.mine(tables["compiles"])
    zero = focus.first(tables["runs"]).get("started_us")
    zero = zero or min(compiles["started_us"].drop_nulls(), default=0.0)
    ordered = compiles.sort(pl.col("started_us").fill_null(0.0), maintain_order=True)
    found = []
    for row in ordered.head(MOST_COMPILES).iter_rows(named=True):
        started, duration = row["started_us"], row["duration_us"]
        backward = BACKWARD if row["is_forward"] is False else ""
        compile_row = struct_of(
            CompileRow,
            row,
            name=(row["co_name"] or "?") + backward,
            file=row["co_filename"],
            line=row["co_firstlineno"],
            outcome=row["outcome"] or "unfinished",
            started_s=None if started is None else (started - zero) / 1e6,
            seconds=None if duration is None else duration / 1e6,
            phases=exclusive_phases(row),
            ops=row["graph_op_count"],
            guards=row["guard_count"],
            reason=cut(row["fail_reason"] or row["recompile_reason"], TEXT_CHARACTERS),
        )
        found.append(compile_row)
    return tuple(found)


def recompile_chains(tables: Tables, focus: Focus) -> tuple[RecompileChain, ...]:
    """Per function, its recompiles in order: the guard that decided each one, old → new."""
    compiles = focus.mine(tables["compiles"]).select(_OF_CHAINS).to_dicts()
    by_key = {row["compile_key"]: row for row in compiles if row["is_forward"] is not False}
    groups = grouped(focus.rows(tables["recompile_causes"]), by=code_of)
    per_function = Counter(map(code_of, by_key.values()))
    limited = {code_of(row) for row in compiles if row["outcome"] == "limit"}
    chains = []
    for code, rows in groups.items():
        links = []
        for row in rows[:MOST_LINKS]:
            duration = by_key.get(row["compile_key"], {}).get("duration_us")
            link = struct_of(
                RecompileLink,
                row,
                guard=cut(row["guard"], TEXT_CHARACTERS) or "",
                old=cut(row["old"], VALUE_CHARACTERS),
                new=cut(row["new"], VALUE_CHARACTERS),
                seconds=None if duration is None else duration / 1e6,
            )
            links.append(link)
        name, file, line = code
        compiled = per_function[code] or len(rows) + 1
        hit = code in limited
        chains.append(RecompileChain(name or "?", file, line, compiled, hit, tuple(links)))
    return tuple(sorted(chains, key=lambda chain: -len(chain.links))[:MOST_CHAINS])


def break_sites(tables: Tables, focus: Focus) -> tuple[GraphBreakSite, ...]:
    """Graph breaks by the user's line and torch's reason, most frequent first.

    Among them are those that ``fullgraph=True`` makes errors.
    """
    found = []
    for row in sorted(focus.rows(tables["break_sites"]), key=lambda row: -row["times"]):
        refused = "fullgraph=True made it an error." if row["refused"] else None
        explanation = " ".join(filter(None, (refused, row["explanation"])))
        reason = row["gb_type"] or (row["reason"] or "").split("\n", 1)[0]
        site = struct_of(
            GraphBreakSite,
            row,
            reason=cut(reason, TEXT_CHARACTERS),
            explanation=cut(explanation, TEXT_CHARACTERS) or None,
        )
        found.append(site)
    return tuple(found[:MOST_SITES])

"""Table ``break_costs``: what the graph breaks at a line cost a step, as far as its profile shows.

Seen are Python between the compiled regions, and entering one region more for each break; on a GPU
what the device idles meanwhile, and while a value is read. Fusion lost at the break is not seen.
Where nothing runs compiled after it, the rest of the function stays in eager: all but what the line
that breaks calls itself, which Python calls in any case (unless the whole frame was skipped).

After a break the rest of the function is a graph of its own, and what a function calls at a line
that breaks, or after Dynamo gave it up, is compiled by itself: each is entered at every call. What
no line shows is shared by these entries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import msgspec
import polars as pl

from traceview.derive.facts.breaks import break_ended, refused_compiles
from traceview.derive.facts.outside import operators_ms
from traceview.derive.facts.places import about, stack
from traceview.derive.facts.rows import (
    Row,
    first,
    first_rank,
    frame,
    rows,
    step_ms,
    timed_scale,
)
from traceview.tables import Tables, from_rows
from traceview.torchtext.frames import resumed

#: Python at breaks: on a CPU its time, on a GPU what the device idles meanwhile.
_GAPS = ("graph_break", "idle_graph_break")
#: Entering compiled code, which each break makes happen once more.
_ENTRIES = (
    *("overhead_cache_lookup", "overhead_pregraph_bytecode", "overhead_runtime_wrappers"),
    *("overhead_generated_wrapper", "overhead_compiled_region"),
    *("idle_guards", "idle_call_overhead"),
)
_WAIT = "idle_sync"
_ENTERED = "pregraph_bytecode"
#: Kinds of breaks that read a tensor's value.
_READS = frozenset({"item", "data_dependent"})
#: A figure is measured where what fusion could add to it is at most this part of it, and the
#: profiler made the step longer by at most this part: of short steps it is most of what is seen.
UNKNOWN_SHARE = 0.25
#: From this many failed compiles of one function on, it is tried again and again.
_AGAIN = 3

Line = tuple[str, int] | None


class _Site(msgspec.Struct, frozen=True):
    """All breaks at one line that are errors with ``fullgraph=True``, or all that are not."""

    line: Line
    refused: bool
    rows: Sequence[Row]

    @property
    def keys(self) -> set[str]:
        return {key for row in self.rows for key in row["compile_keys"]}

    @property
    def skipped(self) -> bool:
        return any(row["frame_skipped"] for row in self.rows)

    @property
    def in_library(self) -> bool:
        return any(row["inside_file"] is not None for row in self.rows)

    @property
    def reads(self) -> bool:
        return any(not _READS.isdisjoint(row["kinds"]) for row in self.rows)


def break_costs(tables: Tables) -> pl.DataFrame | None:
    """Table ``break_costs``: a row per line of the measured pass; None without ``break_sites``."""
    if not tables.has("break_sites"):
        return None
    found: dict[tuple[Line, bool], list[Row]] = defaultdict(list)
    for row in rows(tables, "break_sites", in_torch=False):
        at = (row["file"], row["line"]) if row["file"] else None
        found[at, row["refused"]].append(row)
    sites = [_Site(at, refused, of_line) for (at, refused), of_line in found.items()]
    step = _Step(tables, sites)
    ends = {
        (row["target_file"], row["target_line"]): row["target_last_line"]
        for row in first_rank(rows(tables, "regions"))
    }
    columns = ("compile_key", "co_filename", "co_firstlineno")
    code_of = {key: code for key, *code in frame(tables, "compiles").select(columns).iter_rows()}
    costs = []
    for site in sites:
        head = {name: site.rows[0][name] for name in ("pass", "rank", "file", "line", "refused")}
        # Operators of a step in the functions that break there, in no compiled graph.
        codes = dict.fromkeys(tuple(code_of[key]) for key in sorted(site.keys) if key in code_of)
        known = [(*code, end) for code in codes if (end := ends.get(code))]
        eager = sum(operators_ms(tables, *each) for each in known) or None
        rest = eager
        if eager and site.line and not (site.in_library or site.skipped):
            rest = eager - operators_ms(tables, site.line[0], site.line[1], site.line[1]) or None
        cost = _refused(tables, site) if site.refused else step.cost(site, eager, rest)
        costs.append({**head, "eager_ms": eager, **cost})
    return from_rows("break_costs", costs)


class _Step:
    """The breaks of a compiled step: what all of them cost, and what each one does."""

    def __init__(self, tables: Tables, sites: Sequence[_Site]) -> None:
        self._tables = tables
        self._lines = {site.line for site in sites}
        self._readers = len({site.line for site in sites if site.reads}) or 1
        self._shares = _shares(tables, sites)
        self._counts: Row = first(tables, "step_counts", stance="compiled") or {}
        self._accounts = first_rank(rows(tables, "accounting", stance="compiled"))
        self._at: dict[Line, float] = defaultdict(float)
        self._waits: dict[Line, float] = defaultdict(float)
        for row in first_rank(rows(tables, "account_details", stance="compiled")):
            line = (row["file"], row["line"]) if row["file"] and row["line"] else None
            kept = self._at if row["category"] in _GAPS else self._waits
            if row["category"] in (*_GAPS, _WAIT):
                kept[line] += row["ms"] or 0.0
        self._gap_ms = self._gap()
        self._all_ms = self._all()

    def cost(self, site: _Site, eager: float | None, rest: float | None) -> dict[str, Any]:
        """What is seen of the breaks at ``site``: columns of ``break_costs``.

        ``eager``: ms of a step that its functions spend in operators in eager; ``rest``: without
        those of the line that breaks.
        """
        if self._all_ms is None:
            return {"basis": "not_measured"}
        total = {"all_ms": self._all_ms, "lines": len(self._lines), "clock": self._clock}
        if self._counts.get("gap_ms") == 0:  # nothing runs compiled after it: it has no other cost
            return {**total, "ms": rest, "with_eager": bool(rest), "basis": "one_part"}

        unplaced = max(0.0, self._all_ms - sum(self._at[line] for line in self._lines))
        own = self._at[site.line] if site.line else 0.0
        ms = min(self._all_ms, own + unplaced * self._shares[site.line]) + self._waited(site)
        # On a CPU, Python at a break is timed with the operators that it runs.
        given_up = bool(ms and site.skipped and self._clock == "device" and eager)
        # No fusion can save more than the time in kernels that Inductor wrote.
        busy = [row for row in self._accounts if row["kind"] == "busy"]
        made = [row["ms"] or 0.0 for row in busy if row["category"].startswith("generated_")]
        fusible = sum(made) if busy else None
        apart = self._counts["gap_ms"] is not None
        profiled, timed = self._counts.get("step_ms"), step_ms(self._tables, "compiled")
        disturbed = profiled and timed and profiled > (1 + UNKNOWN_SHARE) * timed
        sure = fusible is not None and fusible <= UNKNOWN_SHARE * ms and not disturbed
        return {
            **total,
            "ms": ms + (eager or 0.0) if given_up else ms,
            "with_eager": given_up,
            "fusible_ms": fusible,
            "basis": "parts" if apart else "entries",
            "measured": bool(apart and len(self._lines) == 1 and sure and not given_up),
        }

    @property
    def _clock(self) -> str:
        return "device" if any(row["clock"] == "device" for row in self._accounts) else "host"

    def _gap(self) -> float | None:
        """Python between the compiled regions of a step; 0 where nothing ran after a break.

        Of the step as timed; without an accounting of it, as profiled and scaled to it.
        """
        gap: float | None = self._counts.get("gap_ms")
        if gap and self._accounts:
            return self._sum(_GAPS)
        profiled, timed = self._counts.get("step_ms"), step_ms(self._tables, "compiled")
        return None if gap is None else gap * (timed_scale(timed, profiled) or 1.0)

    def _all(self) -> float | None:
        """All that is seen of the breaks of a step: Python there, and entering more regions."""
        regions = self._counts.get("compiled_regions")
        if self._gap_ms is not None:
            if not (self._counts.get("gap_ms") and self._counts.get("gaps") and regions):
                return self._gap_ms
            extra: float = self._sum(_ENTRIES) * min(1.0, self._counts["gaps"] / regions)
            return self._gap_ms + extra
        # torch below 2.9 marks no difference between Python at a break and entering.
        costs = first_rank(rows(self._tables, "region_costs"))
        calls = sum(row["calls_per_step"] or 0.0 for row in costs)
        if not (regions and calls and self._accounts):
            return None
        extra = self._sum(_ENTRIES) * max(0.0, 1.0 - calls / regions)
        return extra

    def _waited(self, site: _Site) -> float:
        """What the device idles because ``site`` reads a value.

        In a compiled function the profile shows no line of a wait: the readers share those.
        """
        if not site.reads:
            return 0.0
        own = self._waits[site.line] if site.line else 0.0
        return own + self._waits[None] / self._readers

    def _sum(self, categories: tuple[str, ...]) -> float:
        return sum(row["ms"] or 0.0 for row in self._accounts if row["category"] in categories)


def _shares(tables: Tables, sites: Sequence[_Site]) -> Mapping[Line, float]:
    """Line → its part, 0 to 1, of a step's entries that breaks cause; equal if unknown."""
    lines: dict[Line, list[Row]] = defaultdict(list)
    for site in sites:
        lines[site.line].extend(site.rows)
    after = {
        line: {code for row in found for code in row["resume_functions"]}
        for line, found in lines.items()
    }
    skipped = [line for line, found in lines.items() if any(row["frame_skipped"] for row in found)]
    targets = {(row["target_file"], row["target_line"]) for row in rows(tables, "regions")}
    entered = first_rank(rows(tables, "call_path", part=_ENTERED))
    calls: dict[str, float] = defaultdict(float)
    for row in entered:
        calls[row["compile_id"]] += row["calls"] or 0.0
    known = frame(tables, "compiles").filter(
        pl.col("compile_id").is_in(list(calls)), pl.col("is_forward").fill_null(value=True)
    )
    compiled = {row["compile_id"]: row for row in first_rank(known.to_dicts())}

    entries: dict[Line, float] = dict.fromkeys(lines, 0.0)
    for name, code in compiled.items():
        if resumed(code["co_name"]):
            found = [line for line, codes in after.items() if codes & about(code)]
        elif (code["co_filename"], code["co_firstlineno"]) in targets:
            found = []  # torch.compile was given it: it is entered anyway
        else:
            calling = {(at.file, at.line) for at in stack(code)[:-1]}
            found = [line for line in lines if line in calling] or skipped
        for line in found:
            entries[line] += calls[name] / len(found)
    total = sum(entries.values())
    return {line: part / total if total else 1 / len(lines) for line, part in entries.items()}


def _refused(tables: Tables, site: _Site) -> dict[str, Any]:
    """What it takes to compile for nothing: of each step where it goes on, else in seconds.

    Nothing is kept of a compile that failed: where the script catches the error, each call tries
    again.
    """
    if break_ended(tables):
        return {"basis": "ended", "measured": True}
    failed = [row for row in refused_compiles(tables) if row["compile_key"] in site.keys]
    spent = [row["duration_us"] / 1e3 for row in failed if row["duration_us"] is not None]
    tried = [
        row
        for row in first_rank(rows(tables, "calls", stance="compiled"))
        if row["outermost"] and row["compiles_inside"] and row["step"] is not None
    ]
    steps = len({row["step"] for row in tried})
    cost: dict[str, Any] = {"clock": "host", "measured": True}
    if len(spent) < _AGAIN or not steps:
        return {**cost, "basis": "tried", "seconds": sum(spent) / 1e3 if spent else None}
    each = sum(row["compiles_inside"] for row in tried) / steps
    return {**cost, "basis": "tried_each_step", "ms": median(spent) * each}

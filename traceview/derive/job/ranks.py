"""Tables ``job_ranks`` and ``job_frames``: compile seconds by rank and by code object."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import polars as pl

from traceview.derive.job.members import ranges, with_member
from traceview.derive.job.spans import Attempt, Code, Row, Span, phases_of, total
from traceview.tables import Tables

FAILED = ("failed",)
_OUTCOMES = {"hit": "hits", "miss": "misses", "guard_miss": "misses", "bypass": "bypasses"}


def rank_rows(tables: Tables, job: Attempt) -> Iterator[Row]:
    """One row a rank, ranks that compiled nothing included."""
    breaks = _breaks(tables, job)
    lookups = _lookups(tables, job)
    for member in job.members:
        spans = job.by_member.get(member, [])
        timed = job.seconds(member)
        times = [span.interval for span in spans if span.interval is not None]
        yield {
            "pass": job.name,
            "rank": int(member) if member.isdigit() else None,
            "member": member,
            "pids": sorted({span.row["pid"] for span in spans if span.row["pid"] is not None}),
            "seconds": 0.0 if timed is None and not spans else timed,
            **(phases_of(spans) if timed is not None else {}),
            "compiles": sum(span.forward for span in spans),
            "recompiles": sum(span.forward and span.again for span in spans),
            "graph_breaks": breaks[member] if breaks is not None else None,
            "failures": sum(span.row["outcome"] in FAILED for span in spans),
            **lookups.get(member, {}),
            "first_us": min((start for start, _ in times), default=None),
            "last_us": max((end for _, end in times), default=None),
        }


def frame_rows(job: Attempt) -> Iterator[Row]:
    """One row a code object, dearest first."""
    groups: dict[Code, list[Span]] = defaultdict(list)
    for span in job.spans:
        groups[span.code].append(span)
    found = [_frame(job, code, spans) for code, spans in groups.items()]
    yield from sorted(found, key=lambda row: -row["rank_seconds"])


def _frame(job: Attempt, code: Code, spans: list[Span]) -> Row:
    seconds: dict[str, float] = defaultdict(float)
    for span in spans:
        seconds[span.member] += span.seconds or 0.0
    most, most_seconds = max(seconds.items(), key=lambda item: item[1])
    located = next((s.row for s in spans if s.row["user_file"] is not None), spans[0].row)
    return {
        "pass": job.name,
        **code_columns(code),
        "user_file": located["user_file"],
        "user_line": located["user_line"],
        "rank_seconds": total(spans) or 0.0,
        "most_seconds": most_seconds,
        "most_member": most,
        **phases_of(spans),
        "ranks": ranges(seconds),
        "rank_count": len(seconds),
        "compiles": sum(span.forward for span in spans),
        "recompiles": sum(span.forward and span.again for span in spans),
        "failures": sum(span.row["outcome"] in FAILED for span in spans),
    }


def code_columns(code: Code) -> Row:
    """The three columns that name a code object."""
    return dict(zip(("co_name", "co_filename", "co_firstlineno"), code, strict=True))


def _breaks(tables: Tables, job: Attempt) -> Counter[str] | None:
    """Member → graph breaks, one a compile and line; None where none could be recorded."""
    if not tables.has("graph_breaks"):
        return None
    mine = with_member(tables["graph_breaks"].filter(pl.col("pass") == job.name))
    what = ["member", "compile_key", "user_file", "user_line", "gb_type"]
    counted = mine.unique(what).group_by("member").len()
    return Counter(dict(counted.iter_rows()))


def _lookups(tables: Tables, job: Attempt) -> dict[str, Row]:
    """Member → look-ups in Inductor's graph cache by how they ended.

    What AOTAutograd's cache finds, Inductor's reports as found once more: one of them counts.
    """
    mine = tables["cache_events"].filter(
        pl.col("pass") == job.name, pl.col("cache") == "fx_graph", pl.col("event").is_in(_OUTCOMES)
    )
    found: dict[str, Row] = {}
    counted = with_member(mine).group_by("member", "event").len()
    for member, event, count in counted.iter_rows():
        row = found.setdefault(member, {"hits": 0, "misses": 0, "bypasses": 0})
        row[_OUTCOMES[event]] += count
    return found

"""What the ranks of a job did: tables about ranks, code objects, failures and stragglers.

``job_ranks``, ``job_frames``  compile seconds by rank and by code object
``job_failures``               compiles that failed, hit the recompile limit, or never ended
``job_stragglers``             ranks that compiled much longer than the others, and what with
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter

import msgspec

from traceview.derive.job.attempts import (
    Attempt,
    Code,
    Row,
    Span,
    breaks,
    code_columns,
    phases_of,
    ranges,
    total,
)
from traceview.derive.job.keys import LookUp, ended
from traceview.tables import Tables, grouped

_OUTCOMES = {"hit": "hits", "miss": "misses", "guard_miss": "misses", "bypass": "bypasses"}
_FAILED = ("failed", "limit", "unfinished")
_CHARACTERS = 2000
#: What differs between two failures of one kind.
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
#: Longer than the median of the others by this factor, and by these seconds.
FACTOR, LEAST_S = 1.3, 1.0
#: Parts of a straggler's time that are kept, and stragglers.
_PARTS, _RANKS = 3, 16


class _Cell(msgspec.Struct):
    """What one rank compiled of one code object."""

    seconds: float = 0.0
    compiles: int = 0
    misses: int = 0


def rank_rows(tables: Tables, job: Attempt) -> Iterator[Row]:
    """One row a rank, ranks that compiled nothing included."""
    broken = Counter(breaks(tables, job.name)["member"])
    # Look-ups in Inductor's graph cache by how they ended: what AOTAutograd's finds, Inductor's
    # reports as found once more, and one of them counts.
    events = ended(tables, job, _OUTCOMES)
    lookups: dict[str, Row] = {}
    for member, event, count in events.group_by("member", "event").len().iter_rows():
        row = lookups.setdefault(member, {"hits": 0, "misses": 0, "bypasses": 0})
        row[_OUTCOMES[event]] += count
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
            **_counts(spans),
            "graph_breaks": broken[member] if tables.has("break_sites") else None,
            **lookups.get(member, {}),
            "first_us": min((start for start, _ in times), default=None),
            "last_us": max((end for _, end in times), default=None),
        }


def frame_rows(job: Attempt) -> Iterator[Row]:
    """One row a code object, the one that took longest first."""
    rows = []
    for code, spans in grouped(job.spans, by=attrgetter("code")).items():
        seconds: dict[str, float] = defaultdict(float)
        for span in spans:
            seconds[span.member] += span.seconds or 0.0
        most, most_seconds = max(seconds.items(), key=lambda item: item[1])
        located = next((s.row for s in spans if s.row["user_file"] is not None), spans[0].row)
        rows.append(
            {
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
                **_counts(spans),
            }
        )
    yield from sorted(rows, key=lambda row: -row["rank_seconds"])


def _counts(spans: list[Span]) -> Row:
    return {
        "compiles": sum(span.forward for span in spans),
        "recompiles": sum(span.forward and span.again for span in spans),
        "failures": sum(span.row["outcome"] == "failed" for span in spans),
    }


def failure_rows(job: Attempt) -> Iterator[Row]:
    """One row for what failed alike, failures first."""
    groups: dict[tuple[object, ...], list[Span]] = defaultdict(list)
    for span in job.spans:
        if span.row["outcome"] in _FAILED:
            row = span.row
            first = (row["fail_reason"] or "").strip().split("\n", 1)[0]
            place = (row["fail_user_file"], row["fail_user_line"])
            alike = (row["outcome"], row["fail_type"], _NUMBER.sub("0", first), place, span.code)
            groups[alike].append(span)
    rows: list[Row] = []
    for spans in groups.values():
        row, members = spans[0].row, {span.member for span in spans}
        torchs = row["fail_user_file"] is not None
        starts = [span.started_us for span in spans if span.started_us is not None]
        reason = row["fail_reason"]
        rows.append(
            {
                "pass": job.name,
                "outcome": row["outcome"],
                "fail_type": row["fail_type"],
                "reason": reason[:_CHARACTERS] if reason else None,
                **code_columns(spans[0].code),
                "user_file": row["fail_user_file"] if torchs else row["user_file"],
                "user_line": row["fail_user_line"] if torchs else row["user_line"],
                "ranks": ranges(members),
                "rank_count": len(members),
                "times": len(spans),
                "first_us": min(starts, default=None),
            }
        )
    yield from sorted(rows, key=lambda row: (_FAILED.index(row["outcome"]), -row["rank_count"]))


def straggler_rows(job: Attempt, found: Iterable[LookUp]) -> Iterator[Row]:
    """Up to three rows for each straggler, the slowest rank first."""
    seconds = {member: job.seconds(member) for member in job.members}
    timed = {member: value for member, value in seconds.items() if value is not None}
    if len(timed) < 2:
        return
    slow = []
    for member, value in timed.items():
        others = statistics.median(v for name, v in timed.items() if name != member)
        if value > FACTOR * others and value - others > LEAST_S:
            slow.append((value, others, member))
    if not slow:
        return
    cells: dict[Code, dict[str, _Cell]] = defaultdict(lambda: defaultdict(_Cell))
    for span in job.spans:
        cell = cells[span.code][span.member]
        cell.seconds += span.seconds or 0.0
        cell.compiles += span.forward
    for look_up in found:
        cells[look_up.span.code][look_up.member].misses += look_up.outcome == "miss"
    for value, median, member in sorted(slow, reverse=True)[:_RANKS]:
        # What it did longer than the median of the others, by function.
        parts = []
        for code, by_member in cells.items():
            if mine := by_member.get(member):
                rest = [by_member.get(name, _Cell()) for name in timed if name != member]
                usual = statistics.median(cell.seconds for cell in rest)
                parts.append((mine.seconds - usual, code, mine, rest))
        parts.sort(key=lambda part: -part[0])
        for excess, code, mine, rest in parts[:_PARTS]:
            if excess > 0:
                more = mine.compiles > statistics.median_high(cell.compiles for cell in rest)
                missed = mine.misses > statistics.median(cell.misses for cell in rest)
                yield {
                    "pass": job.name,
                    "member": member,
                    "seconds": value,
                    "median_seconds": median,
                    "part": "more_compiles" if more else "cache_miss" if missed else "slower",
                    "part_seconds": excess,
                    **code_columns(code),
                    "compiles": mine.compiles,
                    "basis": "derived",
                }

"""Table ``job_failures``: compiles that failed, hit the recompile limit, or never ended."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from traceview.derive.job.members import ranges
from traceview.derive.job.ranks import code_columns
from traceview.derive.job.spans import Attempt, Row, Span

_OUTCOMES = ("failed", "limit", "unfinished")
_CHARACTERS = 2000
#: What differs between two failures of one kind.
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


def failure_rows(job: Attempt) -> Iterator[Row]:
    """One row for what failed alike, failures first."""
    groups: dict[tuple[object, ...], list[Span]] = defaultdict(list)
    for span in job.spans:
        if span.row["outcome"] in _OUTCOMES:
            groups[_alike(span)].append(span)
    found = [_row(job, spans) for spans in groups.values()]
    yield from sorted(found, key=lambda row: (_OUTCOMES.index(row["outcome"]), -row["rank_count"]))


def _alike(span: Span) -> tuple[object, ...]:
    row = span.row
    first = (row["fail_reason"] or "").strip().split("\n", 1)[0]
    place = (row["fail_user_file"], row["fail_user_line"])
    return row["outcome"], row["fail_type"], _NUMBER.sub("0", first), place, span.code


def _row(job: Attempt, spans: list[Span]) -> Row:
    row, members = spans[0].row, {span.member for span in spans}
    torchs = row["fail_user_file"] is not None
    starts = [span.started_us for span in spans if span.started_us is not None]
    reason = row["fail_reason"]
    return {
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

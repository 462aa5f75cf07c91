"""The story of a job on a terminal: its sentence, the figures, the dearest functions, troubles."""

from __future__ import annotations

from collections.abc import Iterator

from traceview.diagnosis.job.model import Job
from traceview.diagnosis.model import Diagnosis
from traceview.reports import words as common
from traceview.reports.job import words
from traceview.words import numbers as fmt
from traceview.words.text import one_line, wrap

_FRAMES, _CAUSES, _RANKS, _TROUBLES = 3, 2, 8, 3


def lines(diagnosis: Diagnosis, job: Job, width: int) -> Iterator[tuple[bool, str]]:
    """Lines of at most ``width`` columns; True: one that a terminal may write in bold."""
    said = one_line(common.said(job.sentence, diagnosis), 600)
    yield from ((True, line) for line in wrap(said, width, hanging="  "))
    facts = " · ".join(f"{name.lower()} {value}" for name, value, _ in words.facts(job))
    yield from _plain(facts, width)
    by_rank = words.seconds_by_rank(job, _RANKS)
    if by_rank:
        yield from _plain(f"by rank: {by_rank}", width)
    for row in job.frames[:_FRAMES]:
        title = f"{words.frame(row, diagnosis)}: {fmt.seconds(row.rank_seconds)}"
        yield False, ""
        yield from ((True, line) for line in wrap(one_line(title, 200), width, hanging="  "))
        for cause in row.causes[:_CAUSES]:
            yield from _plain(f"→ {words.cause(cause)}", width)
    troubles = list(words.troubles(job, diagnosis))
    if troubles:
        yield False, ""
    for kind, text in troubles[: _TROUBLES * 2]:
        yield from _plain(f"{kind}: {text}", width, "")


def _plain(text: str, width: int, indent: str = "  ") -> Iterator[tuple[bool, str]]:
    for line in wrap(one_line(text, 300), width, indent, indent + "  "):
        yield False, line

"""The two step times as bars, whole and divided into what they go to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from traceview.diagnosis.explanation import ProfilerCost
from traceview.diagnosis.model import AccountRow, Diagnosis
from traceview.reports import svg, words
from traceview.reports.pictures.bars import Bar, Segment, stacked
from traceview.reports.view import FAINT
from traceview.words import numbers as fmt
from traceview.words.text import one_line

STANCES = ("eager", "compiled")
LABEL = 60
_KINDS = {"busy": 0, "overhead": 1, "other": 2, "idle": 3, "machine_speed": 4, "unexplained": 5}


def times(diagnosis: Diagnosis) -> Markup:
    """The two step times as two bars."""
    verdict = diagnosis.verdict
    rows = [
        Bar(stance, fmt.milliseconds(ms), (Segment(ms, f"stance-{stance}", "", ""),))
        for stance, ms in (("eager", verdict.eager_ms), ("compiled", verdict.compiled_ms))
        if svg.drawable(ms) and ms >= 0
    ]
    clock = words.clock(verdict.clock)
    return stacked("times", f"Milliseconds per step, eager and compiled ({clock})", rows)


def accounts(diagnosis: Diagnosis) -> Markup:
    """Where a step's time goes, eager above compiled, on one scale and in one order: idle last.

    What the profiler added to the step stands beside the bar, in outline.
    """
    costs = {cost.stance: cost for cost in diagnosis.explanation.profiler}
    rows = [
        Bar(
            stance,
            fmt.milliseconds(total(account)),
            tuple(_segments(in_order(account))),
            _profiler(costs.get(stance)),
            _excess(account),
        )
        for stance in STANCES
        if (account := diagnosis.accounting.get(stance))
    ]
    title = "Milliseconds per step by category, eager and compiled"
    return stacked("accounts", title, rows, 34)


def in_order(rows: Sequence[AccountRow]) -> list[AccountRow]:
    """Work, then torch.compile's own work, the rest, idle; a category is always in one place."""
    return sorted(rows, key=lambda row: _KINDS.get(row.kind, 2))


def drawable(row: AccountRow) -> bool:
    """Whether a row has a length."""
    return svg.drawable(row.ms) and row.ms > 0


def total(rows: Iterable[AccountRow]) -> float:
    """Milliseconds of a step: the sum of its categories."""
    return sum(row.ms for row in rows if svg.drawable(row.ms))


def _segments(rows: Iterable[AccountRow]) -> Iterable[Segment]:
    for row in rows:
        if drawable(row):
            # "idle: waiting for a copy" as "waiting for a copy 0.2 ms idle": a bar has little room.
            kind, colon, rest = words.category(row.category).partition(": ")
            ms = fmt.milliseconds(row.ms)
            name, value = (rest, f"{ms} {kind}") if colon else (kind, ms)
            yield Segment(
                row.ms, words.family(row.category, row.kind), one_line(name, LABEL), value
            )


def _excess(rows: Sequence[AccountRow]) -> Segment | None:
    """How much more was found than the step is long: rows below nought."""
    over = -sum(row.ms for row in rows if svg.drawable(row.ms) and row.ms < 0)
    if over <= FAINT * total(rows):
        return None
    return Segment(over, "unex", "more than the step is long", fmt.milliseconds(over))


def _profiler(cost: ProfilerCost | None) -> Segment | None:
    """How much longer the step was under the profiler."""
    if (
        cost is None
        or not svg.drawable(cost.profiled_step_ms)
        or not svg.drawable(cost.timed_step_ms)
    ):
        return None
    beside = cost.beside_step_ms
    more = cost.profiled_step_ms - (beside if svg.drawable(beside) else cost.timed_step_ms)
    if more <= 0:
        return None
    return Segment(more, "profiler", "the profiler's own cost", f"+{fmt.milliseconds(more)}")

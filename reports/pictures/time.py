"""Where a step's time goes: the two step times, eager to compiled, by category, on a time axis."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from traceview.diagnosis.explanation import StepTimeline, TimelineSpan
from traceview.diagnosis.model import AccountRow, Diagnosis
from traceview.reports import colours, phrases, svg, words
from traceview.reports.pictures.bars import (
    LABEL,
    Bar,
    Segment,
    gantt,
    segment_shape,
    stacked,
    time_axis,
)
from traceview.reports.view import FAINT, digits
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_STANCES = ("eager", "compiled")
_KINDS = {"busy": 0, "overhead": 1, "other": 2, "idle": 3, "machine_speed": 4, "unexplained": 5}
_MOST_EFFECTS, _MOST_CATEGORIES = 16, 7
# A category's change below this share of the longer step is drawn with "everything else".
_SMALL = 0.01
# The axis begins at zero unless all of the waterfall lies above this share of its top.
_HIGH = 0.6
_TITLE = "From the eager step to the compiled one: what became shorter and longer"
_HEAD, _PITCH, _LABEL_LINE, _THICK, _GAP = 24, 40, 17, 18, 10
_SPANS, _LANES = 900, 8  # of one stance: the longest spans, the first lanes
_THINNEST = 0.08  # percent


def times(diagnosis: Diagnosis) -> Markup:
    """The two step times as two bars."""
    verdict = diagnosis.verdict
    rows = [
        Bar(stance, fmt.milliseconds(ms), (Segment(ms, _stance(stance, diagnosis), "", ""),))
        for stance, ms in (("eager", verdict.eager_ms), ("compiled", verdict.compiled_ms))
        if svg.drawable(ms) and ms >= 0
    ]
    clock = words.clock(verdict.clock)
    return stacked("times", f"Milliseconds per step, eager and compiled ({clock})", rows)


def accounts(diagnosis: Diagnosis) -> Markup:
    """Where a step's time goes, eager above compiled, on one scale and in one order: idle last.

    What the profiler added to the step is drawn after the bar, in outline.
    """
    costs = {cost.stance: cost for cost in diagnosis.explanation.profiler}
    bars = []
    for stance in _STANCES:
        rows = diagnosis.accounting.get(stance)
        if not rows:
            continue
        parts = []
        # A category is always in one place: work first, idle last.
        for row in sorted(rows, key=lambda row: _KINDS.get(row.kind, 2)):
            if _drawable(row):
                # There is little room: "idle: waiting for a copy" is "waiting for a copy … idle".
                kind, ms = names.kind_of(row.category), fmt.milliseconds(row.ms)
                label = one_line(names.cause(row.category), LABEL)
                family = colours.family(row.category, row.kind)
                parts.append(Segment(row.ms, family, label, f"{ms} {kind}" if kind else ms))
        total, excess = _total(rows), None
        # More was found than the step is long: rows below zero.
        over = -sum(row.ms for row in rows if svg.drawable(row.ms) and row.ms < 0)
        if over > FAINT * total:
            excess = Segment(over, "unex", "more than the step is long", fmt.milliseconds(over))
        cost, profiler = costs.get(stance), None
        if cost and svg.drawable(cost.profiled_step_ms) and svg.drawable(cost.timed_step_ms):
            beside = cost.beside_step_ms
            plain = beside if svg.drawable(beside) else cost.timed_step_ms
            if (more := cost.profiled_step_ms - plain) > 0:
                said = f"+{fmt.milliseconds(more)}"
                profiler = Segment(more, "profiler", "the profiler's own cost", said)
        bars.append(Bar(stance, fmt.milliseconds(total), tuple(parts), profiler, excess))
    title = "Milliseconds per step by category, eager and compiled"
    return stacked("accounts", title, bars, 34)


def _drawable(row: AccountRow) -> bool:
    """Whether a row has a length."""
    return svg.drawable(row.ms) and row.ms > 0


def _total(rows: Iterable[AccountRow]) -> float:
    """Milliseconds of a step: the sum of its categories."""
    return sum(row.ms for row in rows if svg.drawable(row.ms))


def waterfall(diagnosis: Diagnosis) -> Markup:
    """The named effects; where there are none, the differences of the categories."""
    ends = _ends(diagnosis)
    if ends is None:
        return svg.EMPTY
    eager, compiled = ends
    steps, at = [], eager
    for name, change, family in _changes(diagnosis, max(eager, compiled)):
        steps.append(_changed(name, at, change, digits(diagnosis), family))
        at += change
    if abs(compiled - at) >= 1e-3 * max(eager, compiled):
        rest = compiled - at
        steps.append(
            _changed("everything else", at, rest, digits(diagnosis), colours.effect("", rest))
        )
    if not steps:
        return svg.EMPTY
    first, last = (
        Bar(stance, said, (Segment(ms, _stance(stance, diagnosis), stance, said, 0.0),))
        for stance, ms in (("eager", eager), ("compiled", compiled))
        for said in [fmt.milliseconds(ms)]
    )
    return gantt("waterfall", _TITLE, [first, *steps, last], "ms", axis_start(diagnosis), True)


def axis_start(diagnosis: Diagnosis) -> float:
    """Milliseconds at which the axis begins: 0; just below the lowest bar where all changes are
    small; below 0 where effects lead there."""
    ends = _ends(diagnosis)
    if ends is None:
        return 0.0
    at, levels = ends[0], list(ends)
    for _, change, _ in _changes(diagnosis, max(ends)):
        at += change
        levels.append(at)
    low, high = min(levels), max(levels)
    if low > _HIGH * high and high > low:
        return low - (high - low) * 0.5
    return min(0.0, low)


def category_changes(diagnosis: Diagnosis) -> list[tuple[str, float, float]]:
    """Category, eager ms and compiled ms, the largest change first; needs both stances."""
    sides = [
        {row.category: row.ms for row in diagnosis.accounting.get(stance, ()) if _drawable(row)}
        for stance in _STANCES
    ]
    if not all(sides):
        return []
    found = [
        (name, sides[0].get(name, 0.0), sides[1].get(name, 0.0))
        for name in dict.fromkeys(name for side in sides for name in side)
    ]
    return sorted(found, key=lambda row: -abs(row[2] - row[1]))


def _ends(diagnosis: Diagnosis) -> tuple[float, float] | None:
    """The two medians; for categories, the two sums."""
    if diagnosis.explanation.waterfall:
        eager, compiled = diagnosis.verdict.eager_ms, diagnosis.verdict.compiled_ms
    elif category_changes(diagnosis):
        eager, compiled = (_total(diagnosis.accounting[stance]) for stance in _STANCES)
    else:
        return None
    if not svg.drawable(eager) or not svg.drawable(compiled) or min(eager, compiled) < 0:
        return None
    return (eager, compiled) if max(eager, compiled) > 0 else None


def _changes(diagnosis: Diagnosis, longer: float) -> Iterable[tuple[str, float, str]]:
    """Words, ms (negative: saved) and colour class, in the order of drawing."""
    least = 0.5 * 10.0 ** -digits(diagnosis)  # what would be written as zero
    for effect in diagnosis.explanation.waterfall[:_MOST_EFFECTS]:
        if svg.drawable(effect.ms) and abs(effect.ms) >= least:
            name = names.effect(effect.effect, effect.ms)
            yield name, effect.ms, colours.effect(effect.effect, effect.ms)
    if not diagnosis.explanation.waterfall:
        for name, before, after in category_changes(diagnosis)[:_MOST_CATEGORIES]:
            if abs(after - before) >= _SMALL * longer:
                yield names.category(name), after - before, colours.effect(name, after - before)


def _changed(label: str, at: float, change: float, decimals: int, family: str) -> Bar:
    """One change, drawn from ``at`` (ms) to where it leads."""
    value = f"{fmt.difference(0.0, change, decimals)} ms"
    part = Segment(abs(change), family, label, value, min(at, at + change))
    return Bar(one_line(label, LABEL), value, (part,))


def _stance(stance: str, diagnosis: Diagnosis) -> str:
    """The colour class of a step: compiled is green only where it helped."""
    outcome = diagnosis.verdict.outcome
    named = stance == "compiled" and outcome in ("helped", "hurt")
    return f"stance-{outcome}" if named else f"stance-{stance}"


def steps(diagnosis: Diagnosis) -> Markup:
    """Spans where they lay, cut at the step's end; where a stream has none, the hatching says that
    it is idle."""
    shown = _shown(diagnosis)
    scale = max((step.duration_ms for step in shown), default=0.0)
    if scale <= 0:
        return svg.EMPTY
    parts: list[Markup] = []
    spoken = []
    top = 0.0
    for step in shown:
        label = step.stance if step.step is None else f"{step.stance}, step {step.step}"
        whole = fmt.milliseconds(step.duration_ms)
        parts += [
            svg.text(0, top + 16, label, "rowvalue halo"),
            svg.text(100, top + 16, f"{whole} as profiled", "rowlabel halo", "end"),
        ]
        end = step.duration_ms / scale * 100
        for index, (lane, spans) in enumerate(zip(step.lanes, _longest(step), strict=False)):
            y = top + _HEAD + index * _PITCH
            parts.append(svg.fitted(y + 12, phrases.lane(lane.name), "tick halo", 110, 40))
            # Under a stream's spans lies idle time; under the host's, nothing that is known.
            floor = "idle" if lane.name.startswith("stream") else "host"
            parts.append(svg.filled(0, end, y + _LABEL_LINE, _THICK, floor, "steps"))
            for span in spans:
                left = max(0.0, span.start_ms / scale * 100)
                right = min(end, (span.start_ms + span.duration_ms) / scale * 100)
                if left >= end or right <= 0:
                    continue
                label, ms = one_line(names.kernel(span.label), LABEL), span.duration_ms
                part = Segment(ms, colours.family(span.category), label, fmt.milliseconds(ms))
                width = min(max(right - left, _THINNEST), end - left)
                parts.append(segment_shape(part, left, width, y + _LABEL_LINE, _THICK, "steps"))
        top += _HEAD + _PITCH * len(step.lanes[:_LANES]) + _GAP
        lanes = (f"{phrases.lane(lane.name)} {len(lane.spans)} spans" for lane in step.lanes)
        spoken.append(f"{step.stance} {whole} as profiled: {', '.join(lanes)}")
    axis = time_axis(scale, "ms", 0, top)
    title = "One step on a time axis, eager above compiled, on one scale"
    return svg.picture("steps", top + 20, title, "; ".join(spoken), [*axis, *parts])


def families(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Colour class and words of what the picture shows, the longest in all first."""
    seconds: dict[str, float] = {}
    for step in _shown(diagnosis):
        for lane in step.lanes[:_LANES]:
            for span in filter(_span_drawable, lane.spans):
                seconds[span.category] = seconds.get(span.category, 0.0) + span.duration_ms
    ordered = sorted(seconds, key=lambda category: -seconds[category])
    return [(colours.family(name), names.category(name)) for name in ordered[:16]]


def undrawn(diagnosis: Diagnosis) -> int:
    """How many spans are not drawn because they are short or too many."""
    drawn = sum(len(lane) for step in _shown(diagnosis) for lane in _longest(step))
    spans = (len(lane.spans) for step in _shown(diagnosis) for lane in step.lanes)
    return sum(spans) - drawn + sum(step.left_out for step in _shown(diagnosis))


def _shown(diagnosis: Diagnosis) -> list[StepTimeline]:
    found = [step for step in diagnosis.explanation.timelines if svg.drawable(step.duration_ms)]
    order = {"eager": 0, "compiled": 1}
    return sorted(found, key=lambda step: order.get(step.stance, 2))[:2]


def _span_drawable(span: TimelineSpan) -> bool:
    placed = svg.drawable(span.start_ms) and svg.drawable(span.duration_ms)
    return placed and span.duration_ms > 0


def _longest(step: StepTimeline) -> list[list[TimelineSpan]]:
    """The spans of each lane that are drawn: the longest of the step, in order of start."""
    lanes = step.lanes[:_LANES]
    rows = [(span, index) for index, lane in enumerate(lanes) for span in lane.spans]
    rows = sorted(
        (row for row in rows if _span_drawable(row[0])), key=lambda row: -row[0].duration_ms
    )
    kept: list[list[TimelineSpan]] = [[] for _ in lanes]
    for span, index in rows[:_SPANS]:
        kept[index].append(span)
    return [sorted(spans, key=lambda span: span.start_ms) for spans in kept]

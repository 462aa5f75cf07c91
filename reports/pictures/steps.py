"""One step of each stance on one time axis: the host thread above the device's streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from traceview.diagnosis.explanation import StepTimeline, TimelineLane, TimelineSpan
from traceview.diagnosis.model import Diagnosis
from traceview.reports import phrases, svg, words
from traceview.reports.pictures.accounts import LABEL
from traceview.reports.pictures.axes import time_axis
from traceview.reports.pictures.bars import Segment, segment_shape
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_HEAD, _PITCH, _LABEL_LINE, _THICK, _GAP = 24, 40, 17, 18, 10
_SPANS, _LANES = 900, 8  # of one stance: the longest spans, the first lanes
_THINNEST = 0.08  # percent


def steps(diagnosis: Diagnosis) -> Markup:
    """Spans where they lay, cut at the step's end; where a stream has none, the hatching says that
    it is idle."""
    shown = _shown(diagnosis)
    span = max((step.duration_ms for step in shown), default=0.0)
    if span <= 0:
        return svg.EMPTY
    parts: list[Markup] = []
    top = 0.0
    for step in shown:
        parts += _step(step, top, span)
        top += _HEAD + _PITCH * len(step.lanes[:_LANES]) + _GAP
    axis = time_axis(span, "ms", 0, top)
    said = "; ".join(map(_spoken, shown))
    title = "One step on a time axis, eager above compiled, on one scale"
    return svg.picture("steps", top + 20, title, said, [*axis, *parts])


def families(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Colour class and words of what the picture shows, the longest in all first."""
    seconds: dict[str, float] = {}
    for step in _shown(diagnosis):
        for lane in step.lanes[:_LANES]:
            for span in filter(_drawable, lane.spans):
                seconds[span.category] = seconds.get(span.category, 0.0) + span.duration_ms
    ordered = sorted(seconds, key=lambda category: -seconds[category])
    return [(words.family(name), words.category(name)) for name in ordered[:16]]


def undrawn(diagnosis: Diagnosis) -> int:
    """How many spans are not drawn because they are short or too many."""
    drawn = sum(len(lane) for step in _shown(diagnosis) for lane in _longest(step))
    spans = (len(lane.spans) for step in _shown(diagnosis) for lane in step.lanes)
    return sum(spans) - drawn + sum(step.left_out for step in _shown(diagnosis))


def _shown(diagnosis: Diagnosis) -> list[StepTimeline]:
    found = [step for step in diagnosis.explanation.timelines if svg.drawable(step.duration_ms)]
    order = {"eager": 0, "compiled": 1}
    return sorted(found, key=lambda step: order.get(step.stance, 2))[:2]


def _drawable(span: TimelineSpan) -> bool:
    placed = svg.drawable(span.start_ms) and svg.drawable(span.duration_ms)
    return placed and span.duration_ms > 0


def _longest(step: StepTimeline) -> list[list[TimelineSpan]]:
    """The spans of each lane that are drawn: the longest of the step, in order of start."""
    lanes = step.lanes[:_LANES]
    rows = [(span, index) for index, lane in enumerate(lanes) for span in lane.spans]
    rows = sorted((row for row in rows if _drawable(row[0])), key=lambda row: -row[0].duration_ms)
    kept: list[list[TimelineSpan]] = [[] for _ in lanes]
    for span, index in rows[:_SPANS]:
        kept[index].append(span)
    return [sorted(spans, key=lambda span: span.start_ms) for spans in kept]


def _step(step: StepTimeline, top: float, scale: float) -> list[Markup]:
    label = step.stance if step.step is None else f"{step.stance}, step {step.step}"
    parts = [
        svg.text(0, top + 16, label, "rowvalue halo"),
        svg.text(
            100,
            top + 16,
            f"{fmt.milliseconds(step.duration_ms)} as profiled",
            "rowlabel halo",
            "end",
        ),
    ]
    end = step.duration_ms / scale * 100
    for index, (lane, spans) in enumerate(zip(step.lanes, _longest(step), strict=False)):
        y = top + _HEAD + index * _PITCH
        parts.append(svg.fitted(y + 12, phrases.lane(lane.name), "tick halo", 110, 40))
        parts.append(svg.filled(0, end, y + _LABEL_LINE, _THICK, _floor(lane), "steps"))
        parts += _spans(spans, y + _LABEL_LINE, scale, end)
    return parts


def _floor(lane: TimelineLane) -> str:
    """What lies under a lane's spans: idle time on the device, nothing known on the host."""
    return "idle" if lane.name.startswith("stream") else "host"


def _spans(spans: Sequence[TimelineSpan], y: float, scale: float, end: float) -> Iterable[Markup]:
    for span in spans:
        left = max(0.0, span.start_ms / scale * 100)
        right = min(end, (span.start_ms + span.duration_ms) / scale * 100)
        if left >= end or right <= 0:
            continue
        label = one_line(names.kernel(span.label), LABEL)
        part = Segment(
            span.duration_ms, words.family(span.category), label, fmt.milliseconds(span.duration_ms)
        )
        width = min(max(right - left, _THINNEST), end - left)
        yield segment_shape(part, left, width, y, _THICK, "steps")


def _spoken(step: StepTimeline) -> str:
    lanes = ", ".join(f"{phrases.lane(lane.name)} {len(lane.spans)} spans" for lane in step.lanes)
    return f"{step.stance} {fmt.milliseconds(step.duration_ms)} as profiled: {lanes}"

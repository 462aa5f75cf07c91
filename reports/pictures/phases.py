"""The compile timeline: a row of lanes for every frame, phases below the phase that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from traceview.diagnosis.explanation import PhaseSpan
from traceview.diagnosis.model import Diagnosis
from traceview.reports import svg, words
from traceview.reports.pictures.accounts import LABEL
from traceview.reports.pictures.axes import time_axis
from traceview.reports.pictures.bars import Segment, segment_shape
from traceview.reports.pictures.compiles import frame_of
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_LABEL_LINE, _LANE, _THICK, _GAP = 20, 17, 16, 12
_FRAMES, _SPANS, _DEEPEST, _WORKERS = 12, 1200, 11, 5
_THINNEST = 0.08  # percent


def phases(diagnosis: Diagnosis) -> Markup:
    """Spans where they lay on the host clock; what workers did meanwhile has lanes of its own."""
    spans = [span for span in diagnosis.explanation.phases if _drawable(span)]
    if not spans:
        return svg.EMPTY
    spans = sorted(spans, key=lambda span: -span.seconds)[:_SPANS]
    zero = min(span.started_s for span in spans)
    scale = max(span.started_s + span.seconds for span in spans) - zero
    parts: list[Markup] = []
    said: list[str] = []
    top = 0.0
    for label, rows in _frames(spans, diagnosis):
        lanes = _lanes(rows)
        whole = fmt.seconds(
            sum(span.seconds for span in rows if not span.depth and not span.parallel)
        )
        parts += [
            svg.fitted(top + 15, label, "rowlabel halo"),
            svg.text(100, top + 15, whole, "rowvalue halo", "end"),
        ]
        for index, (lane, tone) in enumerate(lanes):
            y = top + _LABEL_LINE + index * _LANE
            parts.append(svg.rect(0, 100, y, _THICK, tone))
            parts += _drawn(lane, y, zero, scale)
        said.append(f"{label} {whole}")
        top += _LABEL_LINE + len(lanes) * _LANE + _GAP
    axis = time_axis(scale, "s", 0, top - _GAP / 2)
    title = "Compiles over time by frame and phase; nested phases lie below the one that holds them"
    return svg.picture("phases", top + 14, title, "; ".join(said), [*axis, *parts])


def phase_families(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Colour class and words of the parts of compiling that the picture shows."""
    labels = dict.fromkeys(span.label for span in diagnosis.explanation.phases)
    return [(words.phase_family(label), label) for label in list(labels)[:16]]


def _drawable(span: PhaseSpan) -> bool:
    return svg.drawable(span.started_s) and svg.drawable(span.seconds) and span.seconds > 0


def _frames(spans: Iterable[PhaseSpan], diagnosis: Diagnosis) -> list[tuple[str, list[PhaseSpan]]]:
    """Label and spans of the dearest frames, in order of start."""
    frames: dict[str, list[PhaseSpan]] = {}
    for span in spans:
        frames.setdefault(frame_of(span.compile_id or "") or "", []).append(span)
    called = {frame_of(row.compile_id): row.name for row in reversed(diagnosis.compiles)}
    dearest = sorted(frames, key=lambda frame: -max(span.seconds for span in frames[frame]))
    shown = sorted(
        dearest[:_FRAMES], key=lambda frame: min(span.started_s for span in frames[frame])
    )
    return [(one_line(_label(frame, called), LABEL), frames[frame]) for frame in shown]


def _label(frame: str, called: dict[str, str]) -> str:
    return f"{frame} {called.get(frame, '')}".strip() or "not tied to a compile"


def _lanes(spans: Sequence[PhaseSpan]) -> list[tuple[list[PhaseSpan], str]]:
    """One lane for every depth, then those of the workers, whose spans may overlap."""
    deepest = min(_DEEPEST, max((s.depth for s in spans if not s.parallel), default=-1))
    own = [
        ([s for s in spans if not s.parallel and s.depth == depth], "track")
        for depth in range(deepest + 1)
    ]
    workers: list[list[PhaseSpan]] = []
    for span in sorted((s for s in spans if s.parallel), key=lambda s: s.started_s):
        free = next((lane for lane in workers if _end(lane[-1]) <= span.started_s), None)
        if free is not None:
            free.append(span)
        elif len(workers) < _WORKERS:
            workers.append([span])
    return own + [(lane, "track workers") for lane in workers]


def _end(span: PhaseSpan) -> float:
    return span.started_s + span.seconds


def _drawn(spans: Iterable[PhaseSpan], y: float, zero: float, scale: float) -> Iterable[Markup]:
    for span in sorted(spans, key=lambda s: s.started_s):
        left = (span.started_s - zero) / scale * 100
        width = max(span.seconds / scale * 100, _THINNEST)
        label = one_line(span.name or span.label, LABEL)
        own = f", {fmt.seconds(span.self_seconds)} of its own" if span.self_seconds else ""
        value = f"{fmt.seconds(span.seconds)}{own} ({one_line(span.label, LABEL)})"
        part = Segment(span.seconds, words.phase_family(span.label), label, value)
        yield segment_shape(part, min(left, 100 - _THINNEST), width, y, _THICK, "phases")

"""Which picture shows which part of a diagnosis: plain data to ``svg`` shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from markupsafe import Markup

from traceview.diagnosis.model import AccountRow, CompileRow, Diagnosis
from traceview.reports import format as fmt
from traceview.reports import svg, words
from traceview.reports.text import one_line

STANCES = ("eager", "compiled")
# Compile phases wear colours of their own; what is not among them is "rest".
_PHASE_FAMILIES = {"dynamo": "elem", "aot": "norm", "inductor": "gemm", "codegen": "gen1"}
_LONGEST = 40
_LABEL = 60


def times(diagnosis: Diagnosis) -> Markup:
    """The two step times as two bars."""
    verdict = diagnosis.verdict
    rows = [
        svg.Bar(stance, fmt.milliseconds(ms), (svg.Segment(ms, f"stance-{stance}", "", ""),))
        for stance, ms in (("eager", verdict.eager_ms), ("compiled", verdict.compiled_ms))
        if ms is not None and math.isfinite(ms) and ms >= 0
    ]
    clock = words.clock(verdict.clock)
    return svg.bars("times", f"Milliseconds per step, eager and compiled ({clock})", rows)


def waterfall(diagnosis: Diagnosis) -> Markup:
    """Where a step's time goes, eager above compiled, on one scale."""
    rows = [
        svg.Bar(stance, fmt.milliseconds(_total(account)), tuple(_segments(account)))
        for stance in STANCES
        if (account := diagnosis.accounting.get(stance))
    ]
    return svg.bars("waterfall", "Milliseconds per step by category, eager and compiled", rows, 34)


def _total(rows: Iterable[AccountRow]) -> float:
    return sum(row.ms for row in rows if math.isfinite(row.ms))


def _segments(rows: Iterable[AccountRow]) -> Iterable[svg.Segment]:
    for row in rows:
        if math.isfinite(row.ms) and row.ms > 0:
            name = one_line(words.category(row.category), _LABEL)
            family = words.family(row.category, row.kind)
            yield svg.Segment(row.ms, family, name, fmt.milliseconds(row.ms))


def pairs(diagnosis: Diagnosis) -> Markup:
    """Every block pair's ratio, with the median and the interval."""
    dots = _near_axis(_dots(diagnosis))
    verdict = diagnosis.verdict
    middle, ends = verdict.speedup, verdict.speedup_interval
    title = "Eager over compiled time of every block pair, with median and 95 % interval"
    return svg.strip("pairs", title, dots, middle, ends) if dots else svg.EMPTY


def off_axis(diagnosis: Diagnosis) -> int:
    """How many left-out pairs lie too far away to be drawn."""
    dots = _dots(diagnosis)
    return len(dots) - len(_near_axis(dots))


def _dots(diagnosis: Diagnosis) -> list[svg.Dot]:
    return [
        svg.Dot(ratio, bool(pair.get("used", True)), _pair(index, pair, ratio))
        for index, pair in enumerate(diagnosis.pairs[:_LONGEST])
        if (ratio := _number(pair, "speedup")) is not None
    ]


def _near_axis(dots: list[svg.Dot]) -> list[svg.Dot]:
    """Without the left-out pairs whose ratio would squeeze the others together."""
    used = [dot.value for dot in dots if dot.used]
    if not used:
        return dots
    margin = max(max(used) - min(used), 0.02 * max(used))
    low, high = min(used) - margin, max(used) + margin
    return [dot for dot in dots if dot.used or low <= dot.value <= high]


def _pair(index: int, pair: Mapping[str, Any], ratio: float) -> str:
    number = pair.get("pair_index", index)
    said = f"pair {number}: {fmt.ratio(ratio)}"
    if pair.get("used", True):
        return said
    return one_line(f"{said}, left out: {pair.get('left_out') or fmt.MISSING}", 300)


def _number(row: Mapping[str, Any], key: str) -> float | None:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def drawn(diagnosis: Diagnosis) -> list[CompileRow]:
    """The compiles that the timeline draws: the longest ones, in order of start."""
    timed = [row for row in diagnosis.compiles if _placed(row)]
    longest = sorted(timed, key=lambda row: row.seconds or 0.0, reverse=True)[:_LONGEST]
    return sorted(longest, key=lambda row: row.started_s or 0.0)


def _placed(row: CompileRow) -> bool:
    figures = (row.started_s, row.seconds)
    return all(figure is not None and math.isfinite(figure) for figure in figures)


def timeline(diagnosis: Diagnosis) -> Markup:
    """Compiles as a chart over time, each divided into its phases."""
    rows = [
        svg.Bar(
            one_line(f"{row.compile_id} {row.name}", _LABEL),
            fmt.seconds(row.seconds),
            tuple(_phases(row)),
        )
        for row in drawn(diagnosis)
    ]
    return svg.gantt("timeline", "Compiles over time, by phase", rows)


def _phases(row: CompileRow) -> Iterable[svg.Segment]:
    """Phases one after the other: their lengths are exact, their order within a compile is not."""
    start, left = row.started_s or 0.0, row.seconds or 0.0
    for name, length in row.phases.items():
        if length is None or not math.isfinite(length) or length <= 0:
            continue
        yield svg.Segment(length, phase_family(name), words.phase(name), fmt.seconds(length), start)
        start, left = start + length, left - length
    if left > 1e-3:
        yield svg.Segment(left, "rest", "not divided", fmt.seconds(left), start)


def phase_family(name: str) -> str:
    """The CSS class (less its ``f-``) of a compile phase."""
    return _PHASE_FAMILIES.get(name[:-2] if name.endswith("_s") else name, "rest")

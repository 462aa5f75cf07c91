"""Which picture shows which part of a diagnosis: plain data to ``svg`` shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from traceview.diagnosis.model import AccountRow, CompileRow, Diagnosis
from traceview.reports import format as fmt
from traceview.reports import svg, words
from traceview.reports.text import one_line
from traceview.reports.view import digits

STANCES = ("eager", "compiled")
# Compile phases wear colours of their own; what is not among them is "rest".
_PHASE_FAMILIES = {"dynamo": "elem", "aot": "norm", "inductor": "gemm", "codegen": "gen1"}
_LONGEST = 40
_LABEL = 60
# A change below this share of the longer step is drawn with "everything else".
_SMALL, _CHANGES, _LANES = 0.01, 7, 16


def times(diagnosis: Diagnosis) -> Markup:
    """The two step times as two bars."""
    verdict = diagnosis.verdict
    rows = [
        svg.Bar(stance, fmt.step(ms), (svg.Segment(ms, f"stance-{stance}", "", ""),))
        for stance, ms in (("eager", verdict.eager_ms), ("compiled", verdict.compiled_ms))
        if ms is not None and math.isfinite(ms) and ms >= 0
    ]
    clock = words.clock(verdict.clock)
    return svg.bars("times", f"Milliseconds per step, eager and compiled ({clock})", rows)


def waterfall(diagnosis: Diagnosis) -> Markup:
    """Where a step's time goes, eager above compiled, on one scale and in one order: idle last."""
    rows = [
        svg.Bar(stance, fmt.step(_total(account)), tuple(_segments(_in_order(account))))
        for stance in STANCES
        if (account := diagnosis.accounting.get(stance))
    ]
    return svg.bars("waterfall", "Milliseconds per step by category, eager and compiled", rows, 34)


def _in_order(rows: Sequence[AccountRow]) -> list[AccountRow]:
    """Work, then torch.compile's own work, the rest, idle; a category is always in one place."""
    kinds = {"busy": 0, "overhead": 1, "other": 2, "idle": 3}
    return sorted(rows, key=lambda row: kinds.get(row.kind, 2))


def changes(diagnosis: Diagnosis) -> Markup:
    """From the eager step to the compiled one, a bar for each change, the largest first."""
    found = account_changes(diagnosis)
    if not found:
        return svg.EMPTY
    eager, compiled = (_total(diagnosis.accounting[stance]) for stance in STANCES)
    decimals = digits(diagnosis)
    large = [row for row in found if abs(row[2] - row[1]) >= _SMALL * max(eager, compiled)]
    rows = [svg.Bar("eager", fmt.step(eager), (_from("eager", 0.0, eager, "stance-eager"),))]
    at = eager
    for name, before, after in large[:_CHANGES]:
        rows.append(_changed(words.category(name), at, before, after, decimals))
        at += after - before
    if abs(compiled - at) >= 1e-3 * max(eager, compiled):
        rows.append(_changed("everything else", at, at, compiled, decimals))
    total = _from("compiled", 0.0, compiled, "stance-compiled")
    rows.append(svg.Bar("compiled", fmt.step(compiled), (total,)))
    title = "From the eager step to the compiled one: what became shorter and longer"
    return svg.gantt("changes", title, rows, "ms")


def account_changes(diagnosis: Diagnosis) -> list[tuple[str, float, float]]:
    """Category, eager ms and compiled ms, the largest change first; needs both stances."""
    sides = [
        {row.category: row.ms for row in diagnosis.accounting.get(stance, ()) if _drawable(row)}
        for stance in STANCES
    ]
    if not all(sides):
        return []
    names_ = dict.fromkeys(name for side in sides for name in side)
    found = [(name, sides[0].get(name, 0.0), sides[1].get(name, 0.0)) for name in names_]
    return sorted(found, key=lambda row: -abs(row[2] - row[1]))


def _changed(label: str, at: float, before: float, after: float, decimals: int) -> svg.Bar:
    """One change, drawn from ``at`` (ms) to where it leads."""
    end = at + after - before
    family = "less" if after < before else "more"
    part = _from(label, min(at, end), abs(end - at), family)
    value = f"{fmt.difference(before, after, decimals)} ms"
    return svg.Bar(one_line(label, _LABEL), value, (part,))


def _from(label: str, start: float, length: float, family: str) -> svg.Segment:
    return svg.Segment(length, family, label, fmt.step(length), max(0.0, start))


def _drawable(row: AccountRow) -> bool:
    return math.isfinite(row.ms) and row.ms > 0


def _total(rows: Iterable[AccountRow]) -> float:
    return sum(row.ms for row in rows if math.isfinite(row.ms))


def _segments(rows: Iterable[AccountRow]) -> Iterable[svg.Segment]:
    for row in rows:
        if _drawable(row):
            name = one_line(words.category(row.category), _LABEL)
            family = words.family(row.category, row.kind)
            yield svg.Segment(row.ms, family, name, fmt.step(row.ms))


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


def placed(diagnosis: Diagnosis) -> list[CompileRow]:
    """The compiles that the timeline draws: those that have a start and a length."""
    return [row for row in diagnosis.compiles if _placed(row)]


def _placed(row: CompileRow) -> bool:
    figures = (row.started_s, row.seconds)
    return all(figure is not None and math.isfinite(figure) for figure in figures)


def timeline(diagnosis: Diagnosis) -> Markup:
    """Compiles over time, a row for every frame (the dearest, the rest together), by phase."""
    frames: dict[tuple[str, str], list[CompileRow]] = {}
    for row in placed(diagnosis):
        frames.setdefault((_frame(row), row.name), []).append(row)
    dearest = sorted(frames.values(), key=_seconds, reverse=True)
    shown = sorted(dearest[:_LANES], key=lambda rows: min(row.started_s or 0.0 for row in rows))
    lanes = [_lane(f"{_frame(rows[0])} {rows[0].name}", rows) for rows in shown]
    if rest := [row for rows in dearest[_LANES:] for row in rows]:
        lanes.append(_lane(fmt.plural(len(dearest) - _LANES, "more function"), rest))
    return svg.gantt("timeline", "Compiles over time, by phase", lanes)


def _frame(row: CompileRow) -> str:
    return row.compile_id.rpartition("/")[0]


def _seconds(rows: Iterable[CompileRow]) -> float:
    return sum(row.seconds or 0.0 for row in rows)


def _lane(label: str, rows: Sequence[CompileRow]) -> svg.Bar:
    many = f" · {fmt.plural(len(rows), 'compile')}" if len(rows) > 1 else ""
    longest = sorted(rows, key=lambda row: -(row.seconds or 0.0))[: 4 * _LONGEST]
    parts = [part for row in sorted(longest, key=_start) for part in _phases(row)]
    return svg.Bar(one_line(label, _LABEL) + many, fmt.seconds(_seconds(rows)), tuple(parts))


def _start(row: CompileRow) -> float:
    return row.started_s or 0.0


def _phases(row: CompileRow) -> Iterable[svg.Segment]:
    """Phases one after the other: their lengths are exact, their order within a compile is not."""
    start, left = row.started_s or 0.0, row.seconds or 0.0
    for name, length in row.phases.items():
        if length is None or not math.isfinite(length) or length <= 0:
            continue
        label = one_line(f"{row.compile_id} {words.phase(name)}", _LABEL)
        yield svg.Segment(length, phase_family(name), label, fmt.seconds(length), start)
        start, left = start + length, left - length
    if left > 1e-3:
        label = one_line(f"{row.compile_id} not divided", _LABEL)
        yield svg.Segment(left, "rest", label, fmt.seconds(left), start)


def phase_family(name: str) -> str:
    """The CSS class (less its ``f-``) of a compile phase."""
    return _PHASE_FAMILIES.get(name[:-2] if name.endswith("_s") else name, "rest")

"""The words, marks and figures that every form of the record shares, and the histogram."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from markupsafe import Markup

from traceview.reports import svg
from traceview.rollout.model import Check, Dimension, Process, Rollout, Rung, Served, Shape, Traffic
from traceview.words import numbers as fmt
from traceview.words.text import listed

#: Whether a check passed: (mark, word). Colour only repeats it.
MARKS: dict[bool | None, tuple[str, str]] = {
    True: ("✓", "passed"),
    False: ("✕", "failed"),
    None: ("–", "not recorded"),
}
#: Check: its question.
CHECKS = {
    "outputs": "Outputs agree",
    "recompiles": "No recompiles after warm-up",
    "caches": "Caches kept",
    "memory": "Memory",
    "fallback": "Fallback ready",
    "shapes": "Shapes covered",
}
PROCESSES = {
    "cold": "compiled, cold",
    "warm": "compiled, warm",
    "eager": "eager",
}
_WHY = {
    "calls": "stopped by --calls",
    "seconds": "stopped by --seconds",
    "end": "until the script ended",
}
_BARS, _HEIGHT, _AXIS = 60, 120, 22
#: Buckets that a picture has room for, and sizes that a cell has.
_DRAWN, _SIZES = 8, 16


def mark(check: Check) -> str:
    """``✓ Outputs agree``."""
    return f"{MARKS[check.passed][0]} {CHECKS[check.name]}"


def tone(record: Rollout) -> str:
    """The page's colour: helped, failed or neutral."""
    failed = any(check.passed is False for check in record.checks)
    return "failed" if failed else "helped" if record.ready else "neutral"


def recompiles(row: Served) -> str:
    """Per 1,000 calls, and those after the warm-up; a dash for eager."""
    if row.process == "eager":
        return "–"
    late = f", {fmt.plural(row.late_calls, 'call')} late" if row.late_calls else ""
    return f"{fmt.count(row.per_thousand)}{late}"


def latencies(row: Served) -> list[tuple[str, str]]:
    """p50, p95, p99 and the longest after the warm-up, in one unit.

    Each with what it is without the calls that compiled, where that differs.
    """
    names = ("p50_ms", "p95_ms", "p99_ms", "max_ms")
    known = [getattr(own, n) for n in names for own in (row.after_warmup, row.without_compiles)]
    given = [ms for ms in known if ms is not None]
    said = iter(fmt.together(*given) if given else ())
    texts = ["–" if ms is None else next(said) for ms in known]
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return [(every, "" if quiet in (every, "–") else quiet) for every, quiet in pairs]


def percentiles(row: Served) -> list[str]:
    """p50, p95 and p99 in words."""
    cells = latencies(row)[:3]
    return [every + (f" ({quiet} without compiles)" if quiet else "") for every, quiet in cells]


def served_of(record: Rollout, traffic: Traffic) -> str:
    """Whose calls these are."""
    if traffic.file is not None:
        return f"{traffic.file}: {fmt.plural(traffic.calls, 'call')}"
    name = next((row.name for row in record.served if row.region_id == traffic.region_id), "")
    return f"{name}: {fmt.plural(traffic.calls, 'call')} of this run"


def process(row: Process) -> str:
    """How it ended, what it compiled, its memory."""
    ended = _WHY.get(row.why or "", f"ending not recorded ({row.ended})")
    calls = "calls not recorded" if row.calls is None else fmt.plural(row.calls, "call")
    parts = [f"{calls}, {ended}"]
    if row.graphs is not None and row.name != "eager":
        parts.append(fmt.plural(row.graphs, "graph"))
    where = "GPU memory" if (row.device or "cpu") != "cpu" else "memory of the process"
    parts.append(f"peak {where} {fmt.size(row.peak_bytes)}")
    return "; ".join(parts)


def shape(row: Shape) -> str:
    """``ids 1×128, mask 1×128``; tensors of one shape together."""
    names: dict[tuple[int, ...], list[str]] = {}
    for name, sizes in row.tensors:
        names.setdefault(sizes, []).append(name)
    return ", ".join(
        f"{'/'.join(own)} {'×'.join(map(str, sizes)) or 'scalar'}" for sizes, own in names.items()
    )


def graphs(record: Rollout, traffic: Traffic) -> str:
    """What it takes without buckets."""
    static, dynamic = traffic.static_graphs, traffic.dynamic_graphs
    if static == 1:
        return "One combination of sizes: one graph"
    limits = (row.settings.get("recompile_limit") for row in record.processes)
    limit = next((each for each in limits if isinstance(each, int)), None)
    beyond = limit is not None and static > limit
    above = f" (more than the recompile limit, {limit}: the rest runs in eager)" if beyond else ""
    apart = " (torch keeps 0 and 1 apart)" if dynamic > 1 else ""
    one = fmt.plural(static, "graph")
    return f"{one} with static sizes{above}, {dynamic} with dynamic ones{apart}"


def varies(row: Dimension) -> str:
    """``ids[1], mask[1]: 5 to 127, 9 sizes``."""
    sizes = row.sizes
    known = {True: ", dynamic in this run", False: ", static in this run", None: ""}[row.dynamic]
    span = f"{sizes[0][0]:,} to {sizes[-1][0]:,}, {fmt.plural(len(sizes), 'size')}"
    return f"{', '.join(row.where)}: {span}{known}"


def rung(row: Rung) -> tuple[str, str, str]:
    """Graphs, padding, and the buckets by dimension."""
    one = len(row.buckets) == 1
    buckets = [f"{'' if one else f'{name}: '}{_few(own)}" for name, own in row.buckets.items()]
    return f"{row.graphs:,}", fmt.percent(row.padding), "; ".join(buckets)


def covered(traffic: Traffic) -> str:
    """Which part of a file's calls meets compiled code."""
    coverage = traffic.coverage
    if coverage is None:
        return "Which part of it this run has compiled is not recorded"
    said = f"{fmt.percent(coverage.seen)} of its calls have sizes that this run has served"
    if coverage.dynamic:
        said += f", {fmt.percent(coverage.dynamic)} lie in the range of a dynamic graph"
    missing = [f"{shape(row)} ({fmt.plural(row.calls, 'call')})" for row in coverage.missing[:3]]
    return f"{said}; not covered: {listed(missing)}" if missing else f"{said}; nothing is missing"


def _few(sizes: Sequence[int]) -> str:
    shown = ", ".join(f"{size:,}" for size in sizes[:_SIZES])
    return f"{shown}, …" if len(sizes) > _SIZES else shown


def histogram(name: str, row: Dimension, rungs: Sequence[Rung]) -> Markup:
    """Calls by size, with the buckets of the largest set that there is room for."""
    low, high = row.sizes[0][0], row.sizes[-1][0]
    width = max(1, ceil((high - low + 1) / _BARS))
    bars = [0] * ((high - low) // width + 1)
    for size, calls in row.sizes:
        bars[(size - low) // width] += calls
    most, part = max(bars), 100 / len(bars)
    sets = [own for rung in rungs if len(own := rung.buckets.get(row.name, ())) <= _DRAWN]
    buckets = max(sets, key=len, default=())
    drawn = []
    for index, calls in enumerate(bars):
        if calls:
            first = low + index * width
            span = f"{first:,}" if width == 1 else f"{first:,} to {first + width - 1:,}"
            height = max(1.0, _HEIGHT * calls / most)
            bar = svg.rect(index * part, part, _HEIGHT - height, height, "f-stance-compiled")
            drawn.append(svg.titled(f"size {span}: {fmt.plural(calls, 'call')}", bar))
    drawn.append(svg.line(0, _HEIGHT, 100, _HEIGHT, "grid"))
    for bucket in buckets:
        at = min(100.0, ((bucket - low) // width + 1) * part)
        drawn.append(
            svg.titled(f"bucket {bucket:,}", svg.line(at, 0, at, _HEIGHT, "ceiling other"))
        )
    drawn += [
        svg.text(0, _HEIGHT + 16, f"{low:,}", "tick"),
        svg.text(100, _HEIGHT + 16, f"{high:,}", "tick", "end"),
    ]
    said = "; ".join(f"{size}: {calls}" for size, calls in row.sizes[:60])
    described = f"Calls by size. {said}. Buckets: {_few(buckets)}."
    title = f"Calls by the size of {row.name}"
    return svg.picture(name, _HEIGHT + _AXIS, title, described, drawn)

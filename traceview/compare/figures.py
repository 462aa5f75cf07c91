"""The figures that two runs are compared by, and that ``traceview check`` sets limits on.

Each knows how it is read from a diagnosis, and how large a difference must be to be more than
noise: a fraction of the figure and an amount, both of which it must exceed. Counts are exact: any
difference counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from traceview.compare.side import CACHES, LOOK_UPS, Side
from traceview.compile_id import CompileId
from traceview.derive.compile_costs import PHASES
from traceview.diagnosis.compiler import (
    BACKWARD,
    MOST_CHAINS,
    MOST_COMPILES,
    MOST_LINKS,
    MOST_SITES,
)
from traceview.diagnosis.job.model import Job
from traceview.diagnosis.model import CompileRow
from traceview.diagnosis.tree import everyone
from traceview.words import names

Interval = tuple[float, float]
MIB = float(1 << 20)
#: Seconds of compiling are measured once: they must differ by more than this fraction and amount.
NOISE, LEAST_S = 0.25, 0.5


class Measured(msgspec.Struct, frozen=True):
    """One figure of one run; ``at_least``: the report's list was cut at this many rows."""

    value: float | None
    interval: Interval | None = None
    at_least: bool = False


Read = Callable[[Side], Measured]


class Kind(msgspec.Struct, frozen=True):
    """One figure: two equal runs may differ by the fraction ``noise`` and the amount ``least``.

    ``noise`` None: it follows from other figures, so no change of its own is claimed.
    """

    key: str
    label: str
    unit: Literal["ratio", "ms", "s", "count", "bytes", "steps"]
    better: Literal["lower", "higher"] | None
    read: Read
    noise: float | None = 0.0
    least: float = 0.0


def of(path: str) -> Read:
    """The figure at ``path`` of the diagnosis; not recorded where a part of the path is missing."""

    def read(side: Side) -> Measured:
        found: Any = side.diagnosis
        for name in path.split("."):
            found = found.get(name) if isinstance(found, dict) else getattr(found, name)
            if found is None:
                break
        return Measured(found)

    return read


def of_logs(key: str) -> Read:
    """A count from the compiler's logs; None if nothing was recorded that could have such rows."""

    def read(side: Side) -> Measured:
        d, frames = side.diagnosis, side.frames
        if d.job is not None and (of_job := most_of_ranks(d.job, key)) is not None:
            return of_job
        listed = {"compiles": frames, "graph_breaks": d.graph_breaks}.get(key, d.recompiles)
        if not (listed or compiled(side)):
            return Measured(None)
        links = sum(len(chain.links) for chain in d.recompiles)
        again = sum(map(is_recompile, d.compiles))  # older versions of torch log no reason
        cut_chains = len(d.recompiles) >= MOST_CHAINS
        cut_links = any(len(chain.links) >= MOST_LINKS for chain in d.recompiles)
        cut_compiles = again > links and len(d.compiles) >= MOST_COMPILES
        count, at_least = {
            "compiles": (sum(row.compiles or 0 for row in frames), len(frames) >= MOST_COMPILES),
            "graph_breaks": (len(d.graph_breaks), len(d.graph_breaks) >= MOST_SITES),
            "recompiles": (max(links, again), cut_chains or cut_links or cut_compiles),
            "recompile_limits": (sum(chain.limit_hit for chain in d.recompiles), cut_chains),
        }[key]
        return Measured(float(count), None, at_least)

    return read


def most_of_ranks(job: Job, key: str) -> Measured | None:
    """The figure of the rank that has most, or of all ranks' places; None if no rank compiled."""
    if not (job.compile.compiles and job.ranks):
        return None
    cut = job.ranks_left_out > 0
    places = job.left_out.get("breaks", 0) + len(job.breaks)
    more_chains = job.left_out.get("recompiles", 0) > 0
    limited = {(row.name, row.file, row.line) for row in job.recompiles if row.limit_hit}
    return {
        "compiles": Measured(float(max(row.compiles for row in job.ranks)), None, cut),
        "graph_breaks": Measured(float(places)),
        "recompiles": Measured(float(max(row.recompiles for row in job.ranks)), None, cut),
        "recompile_limits": Measured(float(len(limited)), None, more_chains),
    }.get(key)


def is_recompile(row: CompileRow) -> bool:
    """Whether the id of a compile says that its frame was compiled before."""
    found = CompileId.parse(row.compile_id)
    return bool(found and found.frame_compile_id) and not row.name.endswith(BACKWARD)


def of_caches(name: str) -> Read:
    """Cache lookups of one kind."""
    return lambda side: Measured(None if side.caches is None else float(side.caches[name]))


def of_severity(severity: str) -> Read:
    """The number of findings of one severity; none are known where nothing could have one."""

    def read(side: Side) -> Measured:
        found = everyone(side.diagnosis.findings)
        many = sum(finding.severity == severity for finding in found)
        return Measured(None if not many and nothing_seen(side) else float(many))

    return read


def of_job_rows(field: str) -> Read:
    """The number of rows in one of a post-mortem's lists, with those that it has no room for."""

    def read(side: Side) -> Measured:
        job = side.diagnosis.job
        if job is None or not compiled(side):
            return Measured(None)
        return Measured(float(len(getattr(job, field)) + job.left_out.get(field, 0)))

    return read


def compiled(side: Side) -> bool:
    """Whether a compile was recorded: only then does a count of zero mean zero."""
    d = side.diagnosis
    return bool(d.compiles or d.compile_time.frames or (d.job and d.job.compile.compiles))


def nothing_seen(side: Side) -> str | None:
    """Why too little is known for a run to be without findings; None if enough is.

    A log of graph breaks or recompiles alone shows these, and no compile that failed.
    """
    verdict = side.diagnosis.verdict
    timed = verdict.steps_timed or verdict.eager_ms is not None or verdict.compiled_ms is not None
    if timed or compiled(side):
        return None
    return "no compile was recorded and no step was timed"


def kinds() -> Iterator[Kind]:
    """Every figure, in the order of the report."""

    def speedup(side: Side) -> Measured:
        return Measured(side.diagnosis.verdict.speedup, side.diagnosis.verdict.speedup_interval)

    def cold(side: Side) -> Measured:  # a compile that was begun and never ended has no seconds
        return Measured((side.diagnosis.compile_time.seconds or None) if compiled(side) else None)

    def break_even(side: Side) -> Measured:
        steps = side.diagnosis.break_even_steps
        return Measured(None if steps is None else float(steps))

    yield Kind("speedup", "Speedup", "ratio", "higher", speedup)
    yield Kind("compiled_ms", "Compiled step", "ms", "lower", of("verdict.compiled_ms"))
    yield Kind("eager_ms", "Eager step", "ms", None, of("verdict.eager_ms"))
    yield Kind("compile_seconds", "Cold compile", "s", "lower", cold, NOISE, LEAST_S)
    warm, first = of("compile_time.warm_seconds"), of("compile_time.first_call_ms")
    yield Kind("warm_compile_seconds", "Warm compile", "s", "lower", warm, NOISE, LEAST_S)
    yield Kind("first_call_ms", "First call", "ms", "lower", first, NOISE, LEAST_S * 1000)
    yield Kind("break_even_steps", "Break-even", "steps", "lower", break_even, None)
    for key, label in (
        ("compiles", "Compiles"),
        ("graph_breaks", "Graph breaks"),
        ("recompiles", "Recompiles"),
        ("recompile_limits", "Recompile limits hit"),
    ):
        yield Kind(key, label, "count", "lower", of_logs(key))
    yield from _steps()
    for owner in CACHES:
        for event, many in zip(LOOK_UPS, ("hits", "misses", "bypasses"), strict=True):
            read, label = of_caches(f"{owner}_{event}"), f"{names.cache(owner)}: {many}"
            yield Kind(f"{owner}_cache_{many}", label, "count", None, read)
    for name, path, label in (
        ("compile", "compile.seconds", "at least one rank compiling"),
        ("rank", "compile.rank_seconds", "compile time, sum over ranks"),
        ("waited", "compile.waited_seconds", "ranks waiting for another's compile"),
        ("late", "late.seconds", "compile time after the start"),
    ):
        read = of(f"job.{path}")
        yield Kind(f"job_{name}_seconds", f"Job: {label}", "s", "lower", read, NOISE, LEAST_S)
    for field in ("failures", "divergences", "stragglers"):
        yield Kind(f"job_{field}", f"Job: {field}", "count", "lower", of_job_rows(field))
    yield Kind("findings_error", "Findings: error", "count", "lower", of_severity("error"))
    yield Kind("findings_warning", "Findings: warning", "count", "lower", of_severity("warning"))
    yield Kind("findings_info", "Findings: info", "count", None, of_severity("info"))


def _steps() -> Iterator[Kind]:
    """Of a compiled step. Counts per step are means: they must differ by half of one."""
    for field, label in (
        ("kernels", "Kernels (on a CPU: operators)"),
        ("launches", "Launches"),
        ("graph_launches", "Cudagraph launches"),
        ("syncs", "Synchronising calls"),
        ("compiled_regions", "Compiled regions"),
    ):
        # whether more of these is worse depends on what they replace
        neither = field in ("graph_launches", "compiled_regions")
        read = of(f"counts.compiled.{field}")
        key, what = f"{field}_per_step", f"{label} per step"
        yield Kind(key, what, "count", None if neither else "lower", read, 0.01, 0.5)
    for field, label in (("device_busy_ms", "Device busy"), ("device_idle_ms", "Device idle")):
        read = of(f"counts.compiled.{field}")
        yield Kind(field, f"{label}, as profiled", "ms", "lower", read, 0.2, 0.01)
    for field, label in (
        ("peak_bytes", "Peak memory"),
        ("peak_reserved_bytes", "Peak memory reserved"),
    ):
        read = of(f"counts.compiled.{field}")
        yield Kind(field, label, "bytes", "lower", read, 0.05, 16 * MIB)


def phases() -> Iterator[Kind]:
    """Compile seconds by phase."""
    for name in PHASES:
        read, label = of(f"compile_time.phases.{name}"), name.removesuffix("_s")
        yield Kind(name, label, "s", "lower", read, NOISE, LEAST_S)

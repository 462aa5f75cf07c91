"""The figures that two runs are compared by, and that ``traceview check`` sets limits on.

Each knows how it is read from a diagnosis, and how large a difference must be to be more than
noise: a fraction of the figure and an amount, both of which it must exceed. Counts are exact: any
difference counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from traceview.compare.side import CACHES, LOOK_UPS, Side
from traceview.derive.compile_costs import PHASES
from traceview.diagnosis.compiler import MOST_CHAINS, MOST_COMPILES, MOST_LINKS, MOST_SITES
from traceview.diagnosis.model import StanceCounts, Verdict
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


def of_verdict(field: str) -> Read:
    """A figure of the verdict; its speedup with the interval."""

    def read(side: Side) -> Measured:
        verdict: Verdict = side.diagnosis.verdict
        interval = verdict.speedup_interval if field == "speedup" else None
        return Measured(getattr(verdict, field), interval)

    return read


def of_step(field: str) -> Read:
    """A figure of a compiled step in the profiler window."""

    def read(side: Side) -> Measured:
        counts: StanceCounts | None = side.diagnosis.counts.get("compiled")
        return Measured(None if counts is None else getattr(counts, field))

    return read


def of_caches(name: str) -> Read:
    """Cache lookups of one kind."""
    return lambda side: Measured(None if side.caches is None else float(side.caches[name]))


def of_compile_time(field: str) -> Read:
    """A figure of the compile time; a key of ``phases`` too."""

    def read(side: Side) -> Measured:
        times = side.diagnosis.compile_time
        return Measured(times.phases.get(field) if field in PHASES else getattr(times, field))

    return read


def _compile_seconds(side: Side) -> Measured:
    return Measured(side.diagnosis.compile_time.seconds if logged(side) else None)


def _break_even(side: Side) -> Measured:
    steps = side.diagnosis.break_even_steps
    return Measured(None if steps is None else float(steps))


def of_logs(key: str) -> Read:
    """A count from the compiler's logs; None if no log was read."""

    def read(side: Side) -> Measured:
        if not logged(side):
            return Measured(None)
        d = side.diagnosis
        cut_chains = len(d.recompiles) >= MOST_CHAINS
        cut_links = any(len(chain.links) >= MOST_LINKS for chain in d.recompiles)
        count, at_least = {
            "compiles": (
                sum(row.compiles or 0 for row in side.frames),
                len(side.frames) >= MOST_COMPILES,
            ),
            "graph_breaks": (len(d.graph_breaks), len(d.graph_breaks) >= MOST_SITES),
            "recompiles": (
                sum(len(chain.links) for chain in d.recompiles),
                cut_chains or cut_links,
            ),
            "recompile_limits": (sum(chain.limit_hit for chain in d.recompiles), cut_chains),
        }[key]
        return Measured(float(count), None, at_least)

    return read


def _of_severity(severity: str) -> Read:
    def read(side: Side) -> Measured:
        found = everyone(side.diagnosis.findings)
        return Measured(float(sum(finding.severity == severity for finding in found)))

    return read


def of_job(field: str) -> Read:
    """Seconds of a whole job, in a post-mortem."""

    def read(side: Side) -> Measured:
        job = side.diagnosis.job
        return Measured(None if job is None else getattr(job.compile, field))

    return read


def of_job_rows(field: str) -> Read:
    """The number of rows in one of a post-mortem's lists, with those that it has no room for."""

    def read(side: Side) -> Measured:
        job = side.diagnosis.job
        if job is None:
            return Measured(None)
        return Measured(float(len(getattr(job, field)) + job.left_out.get(field, 0)))

    return read


def _late_seconds(side: Side) -> Measured:
    job = side.diagnosis.job
    return Measured(job.late.seconds if job and job.late else None)


def logged(side: Side) -> bool:
    """Whether a compiler log was read: only then does a count of zero mean zero."""
    d = side.diagnosis
    return bool(d.reading.records or d.compiles or d.compile_time.frames or d.graph_breaks)


def kinds() -> Iterator[Kind]:
    """Every figure, in the order of the report."""
    yield Kind("speedup", "Speedup", "ratio", "higher", of_verdict("speedup"))
    yield Kind("compiled_ms", "Compiled step", "ms", "lower", of_verdict("compiled_ms"))
    yield Kind("eager_ms", "Eager step", "ms", None, of_verdict("eager_ms"))
    yield Kind("compile_seconds", "Cold compile", "s", "lower", _compile_seconds, NOISE, LEAST_S)
    warm, first = of_compile_time("warm_seconds"), of_compile_time("first_call_ms")
    yield Kind("warm_compile_seconds", "Warm compile", "s", "lower", warm, NOISE, LEAST_S)
    yield Kind("first_call_ms", "First call", "ms", "lower", first, NOISE, LEAST_S * 1000)
    yield Kind("break_even_steps", "Break-even", "steps", "lower", _break_even, None)
    for key, label in (
        ("compiles", "Compiles"),
        ("graph_breaks", "Graph breaks"),
        ("recompiles", "Recompiles"),
        ("recompile_limits", "Recompile limits hit"),
    ):
        yield Kind(key, label, "count", "lower", of_logs(key))
    yield from _steps()
    yield from _caches()
    yield from _jobs()
    for severity in ("error", "warning", "info"):
        better: Literal["lower"] | None = None if severity == "info" else "lower"
        read = _of_severity(severity)
        yield Kind(f"findings_{severity}", f"Findings: {severity}", "count", better, read)


#: A change of these is neither better nor worse: it depends on what they replace.
_NEITHER = ("graph_launches", "compiled_regions")


def _steps() -> Iterator[Kind]:
    """Of a compiled step. Counts per step are means: they must differ by half of one."""
    for field, key, label in (
        ("kernels", "kernels_per_step", "Kernels (on a CPU: operators) per step"),
        ("launches", "launches_per_step", "Launches per step"),
        ("graph_launches", "graph_launches_per_step", "Cudagraph launches per step"),
        ("syncs", "syncs_per_step", "Synchronising calls per step"),
        ("compiled_regions", "compiled_regions_per_step", "Compiled regions per step"),
    ):
        better: Literal["lower"] | None = None if field in _NEITHER else "lower"
        yield Kind(key, label, "count", better, of_step(field), 0.01, 0.5)
    for field, label in (("device_busy_ms", "Device busy"), ("device_idle_ms", "Device idle")):
        yield Kind(field, f"{label}, as profiled", "ms", "lower", of_step(field), 0.2, 0.01)
    for field, label in (
        ("peak_bytes", "Peak memory"),
        ("peak_reserved_bytes", "Peak memory reserved"),
    ):
        yield Kind(field, label, "bytes", "lower", of_step(field), 0.05, 16 * MIB)


def _caches() -> Iterator[Kind]:
    for owner in CACHES:
        for event, many in zip(LOOK_UPS, ("hits", "misses", "bypasses"), strict=True):
            read, label = of_caches(f"{owner}_{event}"), f"{names.cache(owner)}: {many}"
            yield Kind(f"{owner}_cache_{many}", label, "count", None, read)


def _jobs() -> Iterator[Kind]:
    """Figures of all ranks, which only a post-mortem has."""
    for key, field, label in (
        ("job_compile_seconds", "seconds", "Job: at least one rank compiling"),
        ("job_rank_seconds", "rank_seconds", "Job: compile time, sum over ranks"),
        ("job_waited_seconds", "waited_seconds", "Job: ranks waiting for another's compile"),
    ):
        yield Kind(key, label, "s", "lower", of_job(field), NOISE, LEAST_S)
    late = "Job: compile time after the start"
    yield Kind("job_late_seconds", late, "s", "lower", _late_seconds, NOISE, LEAST_S)
    for field in ("failures", "divergences", "stragglers"):
        read = of_job_rows(field)
        yield Kind(f"job_{field}", f"Job: {field}", "count", "lower", read)


def phases() -> Iterator[Kind]:
    """Compile seconds by phase."""
    for name in PHASES:
        read, label = of_compile_time(name), name.removesuffix("_s")
        yield Kind(name, label, "s", "lower", read, NOISE, LEAST_S)

"""Table ``idle_on_compile``: what of a profile's idle time falls on compiles.

A trace's Unix time (``baseTimeNanoseconds``) and the compiler's (chromium events) come from one
clock on one host. A device that waits in a collective works on nothing: that counts as idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from traceview.derive.intervals import Interval, merge
from traceview.derive.job.spans import Attempt, Row
from traceview.derive.job.traces import Trace


def idle_rows(job: Attempt, found: Iterable[Trace]) -> Iterator[Row]:
    """One row a trace."""
    for trace in found:
        own = _spans(job, (trace.member,))
        others = _spans(job, (name for name in job.members if name != trace.member))
        own_ns = sum(map(trace.idle_ns, own))
        both_ns = sum(map(trace.idle_ns, merge((*own, *others))))
        yield {
            "pass": job.name,
            "rank": int(trace.member),
            "member": trace.member,
            "file": trace.name,
            "window_s": (trace.window[1] - trace.window[0]) / 1e9,
            "idle_s": trace.idle_ns(trace.window) / 1e9,
            "own_compile_s": own_ns / 1e9,
            "other_compile_s": (both_ns - own_ns) / 1e9,
            "basis": "measured" if trace.on_device else "derived",
        }


def _spans(job: Attempt, members: Iterable[str]) -> list[Interval]:
    """When any of them compiled, ns."""
    found = (pair for name in members for pair in job.intervals.get(name, ()))
    return [(1000 * start, 1000 * end) for start, end in merge(found)]

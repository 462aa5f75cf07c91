"""Calls as the requests of a service: how long they took, and which of them had to compile."""

from __future__ import annotations

import json
import math

import msgspec

from traceview.rules._rows import Row, first, first_rank, rows
from traceview.tables import Tables

_TAIL = 0.01
#: Clocks of the log and of the collector are the same; what they note is not the same moment.
_APART_US = 20_000.0


class Traffic(msgspec.Struct, frozen=True):
    """``requests`` that could compile, and the milliseconds of those that did, after the first.

    ``usual_ms``: calls without a compile that were timed one by one, in order of their length.
    """

    requests: int
    compiled_ms: tuple[float, ...]
    usual_ms: tuple[float, ...]

    @property
    def p99_ms(self) -> float | None:
        """The 99th percentile, where it is a compile."""
        above = int(_TAIL * self.requests)
        slowest = sorted(self.compiled_ms, reverse=True)
        return slowest[above] if above < len(slowest) else None

    @property
    def usual_p99_ms(self) -> float:
        """The 99th percentile of calls that need not compile: sizes of requests may differ much."""
        return self.usual_ms[math.ceil((1 - _TAIL) * len(self.usual_ms)) - 1]


def traffic(tables: Tables, region: Row) -> Traffic | None:
    """None where the calls are no requests, or what compiled was a warm-up or a sweep."""
    run = first(tables, "runs")
    if run is None or run["step_kind"] != "call" or not run["steps_seen"]:
        return None
    if rows(tables, "compiles", is_forward=False):
        return None
    late = _late(tables)
    usual = [row["host_ms"] for row in _watched(tables, region) if row["host_ms"] is not None]
    if not usual or not _interleaved(tables, late):
        return None
    return Traffic(
        requests=run["steps_seen"] - eager_steps(tables),
        compiled_ms=_compile_ms(tables, late),
        usual_ms=tuple(sorted(usual)),
    )


def _late(tables: Tables) -> list[Row]:
    """Compiles after the first one that were met on the profiled steps' own way to the call."""
    lines = {row["name"] for row in first_rank(rows(tables, "line_ops", kind="line"))}
    compiles = first_rank(rows(tables, "compiles", is_forward=True))
    compiles.sort(key=lambda row: row["started_us"] or 0.0)
    own = {line.rpartition(":")[0] for line in lines} | set(tables["sources"]["file"])
    return [row for row in compiles[1:] if (way := _way(row, own)) and way <= lines]


def _way(compile_: Row, own: set[str]) -> set[str]:
    """Lines of the user's ``own`` files that led to the compiled frame."""
    try:
        stack = json.loads(compile_["stack"] or "[]")
    except ValueError:
        return set()
    frames = stack[:-1] if isinstance(stack, list) else []
    named = (frame for frame in frames if isinstance(frame, dict) and frame.get("file") in own)
    return {f"{frame['file']}:{frame.get('line')}" for frame in named}


def _interleaved(tables: Tables, late: list[Row]) -> bool:
    """Whether an older variant was called again before a new one came.

    torch puts the variant that was called last in front: a guard that failed first says which.
    """
    newest = {row["compile_key"]: row for row in rows(tables, "recompiles", order=0)}
    for row in late:
        failed = newest.get(row["compile_key"])
        number = row["frame_compile_id"]
        if failed and failed["failed_compile_id"] and number is not None:
            before = f"{row['frame_id']}/{number - 1}"
            if failed["failed_compile_id"].partition("_")[0] != before:
                return True
    return False


def _compile_ms(tables: Tables, late: list[Row]) -> tuple[float, ...]:
    """Milliseconds of compiling in each call that met one of ``late``."""
    spans = [
        row
        for row in first_rank(rows(tables, "compile_intervals"))
        if row["started_us"] is not None and row["duration_ms"] is not None
    ]
    spent: dict[int, float] = {}
    for compile_ in late:
        at = compile_["started_us"]
        own = next((row for row in spans if at is not None and _holds(row, at)), None)
        if own is not None and own["step"] is not None:
            spent[own["step"]] = spent.get(own["step"], 0.0) + own["duration_ms"]
    return tuple(spent.values())


def _holds(span: Row, at_us: float) -> bool:
    """Whether a compile that the log has at ``at_us`` is the one of the collector's span."""
    end = span["started_us"] + 1e3 * span["duration_ms"]
    return bool(span["started_us"] - _APART_US <= at_us < end)


def eager_steps(tables: Tables) -> int:
    """Steps that traceview itself ran in eager: they could not compile."""
    blocks = first_rank(rows(tables, "blocks", stance="eager"))
    timed = sum((row["steps"] or 0) + (row["skipped_steps"] or 0) for row in blocks)
    windows = first_rank(rows(tables, "profile_windows", stance="eager"))
    return timed + sum(row["steps"] or 0 for row in windows)


def _watched(tables: Tables, region: Row) -> list[Row]:
    """Calls that were timed one by one and compiled nothing."""
    calls = rows(tables, "calls", stance="compiled", region_id=region["region_id"], outermost=True)
    return [row for row in first_rank(calls) if row["compiles_inside"] == 0]

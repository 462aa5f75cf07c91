"""The record of a rollout check: plain data that the page and the terminal are made of.

Contract: docs/rollout.md and ``traceview/rollout/schema.json``; ``FORMAT`` is raised when a key
changes its meaning or goes away. Every figure says its unit in its name; None means "not recorded".
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from traceview import contracts

FORMAT = 1
RECORD = "rollout.json"
Name = Literal["outputs", "recompiles", "caches", "memory", "fallback", "shapes"]
CHECKS: tuple[Name, ...] = get_args(Name)
#: Processes that serve: compiled with empty caches, compiled with those of the first, eager.
ProcessName = Literal["cold", "warm", "eager"]
PROCESSES: tuple[ProcessName, ...] = get_args(ProcessName)


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of the time of ``calls`` calls (nearest rank)."""

    calls: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of one compiled callable in one process.

    ``after_warmup``: the calls after the first ``warmup_calls``; ``without_compiles``: of them
    those in which nothing was compiled. ``late_calls``: those in which something was.
    ``recompiles``: compiles after the first call; ``per_thousand`` of all calls.
    """

    process: ProcessName
    region_id: int
    name: str
    clock: str
    calls: int
    shapes: int
    first_ms: float
    warmup_calls: int
    warmup_seconds: float
    after_warmup: Latency
    without_compiles: Latency
    recompiles: int
    per_thousand: float
    late_calls: int
    longest_late_ms: float | None


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """One process that served, and what it knew at its end.

    ``ended`` says how it ended; ``why`` it served no more: calls, seconds, end (the script's own).
    """

    name: ProcessName
    ended: str
    why: str | None = None
    calls: int | None = None
    graphs: int | None = None
    stance: str | None = None
    settings: dict[str, Any] = {}
    counters: dict[str, int] = {}
    limit_hits: tuple[str, ...] | None = None
    device: str | None = None
    peak_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    total_bytes: int | None = None
    error: str | None = None


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of the diagnosis that a check is about."""

    code: str
    rule: str
    title: str


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the checklist; ``passed`` is None where it was not measured.

    ``rules``: those that explain it. ``findings``: those of them that have one here.
    """

    name: Name
    passed: bool | None
    detail: str
    rules: tuple[str, ...]
    findings: tuple[Link, ...] = ()


class Dimension(msgspec.Struct, frozen=True, kw_only=True):
    """A size that changes from call to call: ``where`` it is found, as ``ids[1]``.

    ``sizes`` are pairs of a size and its calls, ascending. ``dynamic``: calls with new sizes of it
    were served without a compile; None: not known.
    """

    name: str
    where: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]
    dynamic: bool | None = None


class Rung(msgspec.Struct, frozen=True, kw_only=True):
    """One set of buckets: by dimension, the graphs that it takes, and the share that is padding.

    ``padding`` is of all elements that are then computed.
    """

    graphs: int
    buckets: dict[str, tuple[int, ...]]
    padding: float


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of sizes; ``compiled_calls`` and times are known of this run's calls only."""

    tensors: tuple[tuple[str, tuple[int, ...]], ...]
    calls: int
    compiled_calls: int | None = None
    compiled_ms: float | None = None
    eager_ms: float | None = None


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of the traffic in a file meets compiled code: shares of its calls.

    ``seen``: with exactly these sizes something was compiled, or served without a compile, in this
    run; ``dynamic``: they are within the range that a dynamic graph of this run has served.
    """

    seen: float
    dynamic: float
    missing: tuple[Shape, ...]


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """Shapes of one callable's calls, of this run (``file`` None) or of a file of shapes.

    ``static_graphs``: a graph for each combination; ``dynamic_graphs``: one for all sizes from 2
    on (torch keeps 0 and 1 apart). ``left_out``: calls with another number of tensors or
    dimensions, which no bucket is for.
    """

    file: str | None
    region_id: int | None
    calls: int
    distinct: int
    dimensions: tuple[Dimension, ...]
    static_graphs: int
    dynamic_graphs: int
    rungs: tuple[Rung, ...]
    shapes: tuple[Shape, ...]
    left_out: int = 0
    coverage: Coverage | None = None


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that ``traceview rollout`` reports. ``ready``: every check passed."""

    target: str
    created: str | None
    traceview: str
    environment: dict[str, str | None]
    ready: bool
    verdict: str
    checks: tuple[Check, ...]
    served: tuple[Served, ...]
    processes: tuple[Process, ...]
    traffic: tuple[Traffic, ...]
    notes: tuple[str, ...] = ()


to_json, schema, write_schema = contracts.of(Rollout, FORMAT, "traceview rollout", __file__)

"""step_limits: one stance's step next to the limits of the device.

The most that fusing the remaining generated kernels could save is part of it: within one graph,
what a generated kernel reads of another kernel's output would not be read again, and what only
other kernels read would not be written; of an input that several of them read, all reads but one
go. Such a part of a kernel's bytes is taken for the same part of its time: more than that cannot be
saved, and if all its bytes go, the kernel goes. Library kernels keep their time.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from traceview.derive.causes import LAUNCH_BOUND, UNLINKED
from traceview.derive.limits.ceilings import Ceilings
from traceview.derive.limits.generated import GeneratedCode, site_tensors, touched
from traceview.derive.limits.work import AT_MOST, INPUTS, Tensor, read_inputs
from traceview.derive.windows import GENERATED, Window, far_longer
from traceview.tables import Tables
from traceview.torchtext.dtypes import size_of
from traceview.torchtext.kernel_source import KernelSource
from traceview.torchtext.output_code import PROFILED_CPP, Function, Site

Row = dict[str, Any]
#: Where more than this part of the idle time has no cause, none of it is counted as launches'.
_NAMELESS = 0.1
#: Categories of kernels that only move data, which another layout makes needless.
_SPARED = ("copy", "memset")


def step_limit(
    tables: Tables, window: Window, rows: Sequence[Row], code: GeneratedCode, ceilings: Ceilings
) -> Row | None:
    """The row of one window, of its ``kernel_limits``; None where no kernel ran in marked steps.

    Kernels that overlap on several streams are longer together than the device is busy: a part of
    them counts as that part of the busy time.
    """
    total = sum(row["ms"] for row in rows)
    if not total:
        return None
    accounts = window.own(tables["accounting"]).to_dicts()
    busy = _sum(row["ms"] for row in accounts if row["kind"] == "busy")
    scale = 1.0 if busy is None else busy / total
    idle = [row for row in accounts if row["kind"] == "idle"] if window.on_device else []
    counts = next(window.own(tables["step_counts"]).iter_rows(named=True), {})
    unlike = far_longer(
        *(counts.get(f"{name}_ms") for name in ("unexplained", "timed_step", "beside_step"))
    )
    # Launches' idle time: 0 where the device idles for other reasons, None where causes lack names.
    caused = [row for row in idle if row["ms"] is not None]
    nameless = sum(row["ms"] for row in caused if row["category"] == UNLINKED)
    launch_idle = None
    if caused and nameless <= _NAMELESS * sum(row["ms"] for row in caused):
        launch_idle = sum(row["ms"] for row in caused if row["category"] == LAUNCH_BOUND)
    known = [
        row["ms"]
        for row in rows
        if (row["bytes"] is not None or row["flops"] is not None) and row["flops_kind"] != AT_MOST
    ]
    gap_us = ceilings.gap_us or 0.0
    left = fusible(window, code)
    # Every kernel at its floor, and none shorter than one that does nothing. What moves data to
    # another place or layout, and the bytes that fusing spares, need not be.
    limit = 0.0
    for row in rows:
        least = max(row.get("floor_ms") or 0.0, row["count"] * gap_us / 1e3)
        kept = 0.0 if row["category"] in _SPARED else 1.0
        if left:
            kept *= left.kept.get(re.sub(PROFILED_CPP, r"\1", row["name"]), 1.0)
        limit += kept * min(row["ms"], least)
    limit *= scale
    step = counts.get("timed_step_ms")
    # A limit above the step itself was measured on a slower machine.
    holds = any(row.get("floor_ms") is not None for row in rows) and limit <= (step or math.inf)
    spared = window.ms_per_step(left.ns + left.launches * gap_us * 1e3) if left else None
    return {
        **window.head,
        "step_ms": step,
        "busy_ms": total if busy is None else busy,
        "known_ms": scale * sum(known),
        "limit_ms": limit if holds else None,
        "fusible_ms": None if spared is None else spared * scale,
        "idle_ms": _sum(row["ms"] for row in idle),
        "launch_idle_ms": None if unlike else launch_idle,
    }


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


_Moved = list[tuple[str, int | None]]


class Fusible(msgspec.Struct, frozen=True):
    """Time of a window's kernels that fusing would save at most, and launches that it would.

    ``kept``: generated kernel → the part of its bytes that it has to move all the same.
    """

    ns: float
    launches: float
    kept: dict[str, float]


class _Call(msgspec.Struct):
    """One call: buffers with the bytes that it reads and writes of them; None: not known.

    ``kernel`` is None for a library call.
    """

    kernel: str | None
    reads: _Moved = []
    writes: _Moved = []

    @classmethod
    def of(cls, site: Site, source: KernelSource | None, launched: Sequence[Any] = ()) -> _Call:
        """One call; without ``source`` only names are known of it.

        ``launched``: arguments of a profiled launch, where the code has symbols for sizes.
        A template counts as a library kernel: fusing spares none of its own time. A kernel of the
        user's may write what it is given.
        """
        if source is None:
            out = site.keywords.get("out")
            read = [argument.name for argument in site.arguments]
            written = [site.result, out.name if out else None] if site.library else read
            return cls(None, [(n, None) for n in read if n], [(n, None) for n in written if n])
        call = cls(None if source.template else site.kernel)
        tensors = site_tensors(site.arguments)
        for pointer in source.pointers:
            at = pointer.position
            if at >= len(tensors) or not (name := site.arguments[at].name):
                continue
            given = launched[at] if at < len(launched) else None
            tensor = tensors[at] or (given if isinstance(given, Tensor) else None)
            dtype = pointer.dtype or (tensor.dtype if tensor else None)
            for access, moved in ((pointer.read, call.reads), (pointer.written, call.writes)):
                if access:
                    places = touched(access, tensor)
                    size = None if places is None or dtype is None else places * size_of(dtype)
                    moved.append((name, size))
        return call

    def part(self, spared: _Moved) -> float:
        """Which part of its bytes ``spared`` is; all of it where not all bytes are known."""
        moved = [size for _, size in (*self.reads, *self.writes)]
        known = [size for size in moved if size is not None]
        if not spared or not sum(known):
            return 1.0 if spared else 0.0
        if len(known) < len(moved):
            return 1.0
        return sum(size or 0 for _, size in spared) / sum(known)


def fusible(window: Window, code: GeneratedCode) -> Fusible | None:
    """What is left to fuse in one window; None where no generated code is known."""
    steps = window.ops.filter(pl.col("step").is_not_null())
    frame, ns = (window.main_kernels, "duration_ns") if window.on_device else (steps, "self_ns")
    keys = pl.concat([part["graph_key"] for part in (frame, steps)]).drop_nulls()
    # Every graph that ran: generated kernel → its ns in the window, and how often it ran.
    ran: dict[str, dict[str, tuple[float, int]]] = {key: {} for key in keys.unique().sort()}
    named = pl.col("name").str.replace(PROFILED_CPP, "${1}")
    groups = (
        frame.filter(GENERATED & pl.col("graph_key").is_not_null())
        .group_by("graph_key", named, maintain_order=True)
        .agg(pl.col(ns).sum(), pl.len())
    )
    for graph_key, name, total, times in groups.iter_rows():
        ran[graph_key][name] = (float(total), times)
    shaped = steps.filter(GENERATED & pl.col("input_dims").is_not_null())
    given = {
        row["name"]: inputs.arguments
        for row in shaped.unique("name", keep="first").iter_rows(named=True)
        if (inputs := read_inputs(*(row[column] for column in INPUTS)))
    }
    found = []
    for graph_key, kernels in ran.items():
        for function in code.functions(window.pass_name, graph_key):
            sources = [
                None if site.library else code.source(window.pass_name, site.kernel, graph_key)
                for site in function.sites
            ]
            found.append(_of_function(function, sources, kernels, given))
    if not found:
        return None
    kept: dict[str, float] = {}
    for one in found:
        for name, part in one.kept.items():
            kept[name] = min(part, kept.get(name, 1.0))
    return Fusible(sum(f.ns for f in found), sum(f.launches for f in found), kept)


def _of_function(
    function: Function,
    sources: Sequence[KernelSource | None],
    kernels: dict[str, tuple[float, int]],
    given: Mapping[str, Sequence[object]],
) -> Fusible:
    """``sources`` are those of its sites' kernels, None of library calls.

    ``given``: arguments of one launch of each kernel.
    """
    # A buffer that is another one under a new name goes by the older name.
    calls: list[_Call] = []
    written: set[str] = set()
    for site, source in zip(function.sites, sources, strict=True):
        call = _Call.of(site, source, given.get(site.kernel, ()))
        reads = []
        for name, moved in call.reads:
            aliases = {name}
            while name not in written and function.reused.get(name, name) not in aliases:
                name = function.reused[name]
                aliases.add(name)
            reads.append((name, moved))
        call.reads = reads
        calls.append(call)
        written.update(name for name, _ in call.writes)
    last_read = {name: at for at, call in enumerate(calls) for name, _ in call.reads}
    sites = Counter(call.kernel for call in calls)
    made: set[str] = set()
    seen: set[str] = set()
    ns = launches = 0.0
    kept: dict[str, float] = {}
    for at, call in enumerate(calls):
        merged = [(name, moved) for name, moved in call.reads if name in made]
        spared = merged + [(n, moved) for n, moved in call.reads if n in seen and n not in made]
        spared += [
            (n, moved)
            for n, moved in call.writes
            if last_read.get(n, -1) > at and n not in function.returned
        ]
        made.update(name for name, _ in call.writes)
        if call.kernel is None:
            continue
        seen.update(name for name, _ in call.reads)
        total, times = kernels.get(call.kernel, (0.0, 0))
        part = call.part(spared) / sites[call.kernel]
        ns += total * part
        kept[call.kernel] = kept.get(call.kernel, 1.0) - part
        launches += times / sites[call.kernel] if merged else 0.0
    return Fusible(ns, launches, kept)

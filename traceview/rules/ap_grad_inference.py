"""
## What it finds
Compiled calls that prepare for a backward which never comes: inference with gradients enabled.

## Why it costs
The graph is split into a forward and a backward, the forward also writes what the backward would
read and keeps it until the result dies, and each call goes through autograd. Passes for inference
(freezing, some fusions) and the cudagraphs' fast path are left out.

## Evidence
A joint graph of forward and backward was traced, its compiled forward ran in the profiled steps,
and no backward ran or was compiled in the whole run. Nothing is said where the script has an
optimizer, or its source asks for gradients anywhere: the run may have been too short to get there.

The cost is what autograd takes for each call, and the time to write the saved tensors at the
measured copy rate (where there is none, at that of the dearest generated kernel): the most that can
be gained by these two. A warning where that is 5 % of the step or more; else information.

## What to do
Call the model under `torch.no_grad()` (or `torch.inference_mode()`), in every call alike: a change
of the mode compiles again. Under `no_grad` the results no longer carry gradients.

## References
- https://docs.pytorch.org/docs/stable/notes/autograd.html
- https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
- torch/_functorch/_aot_autograd/graph_compile.py, `aot_stage2_autograd`
- https://github.com/pytorch/pytorch/issues/110666
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from traceview.derive.compiler.traffic import added
from traceview.rules import _costs, _places
from traceview.rules._evidence import from_row
from traceview.rules._rows import Row, first, first_rank, frame, rows
from traceview.rules.finding import Cost, Evidence, Finding, Location, Severity, Snippet
from traceview.tables import Tables
from traceview.torchtext import marks
from traceview.torchtext.fx import read_graph
from traceview.words.numbers import milliseconds, plural, size

CODE = "TV412"
NEEDS = frozenset({"graphs", "runs", "cpu_ops", "backward_calls"})

#: What autograd's engine and a compiled backward are called in a profile.
_BACKWARD = marks.starting(marks.AUTOGRAD, marks.BACKWARD)
#: Below this, a figure of bytes would look like nothing.
LEAST_BYTES = 2**20


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: at the call of the region that is called most."""
    run = first(tables, "runs")
    joint = first_rank(rows(tables, "graphs", kind="aot_joint"))
    if not joint or run is None or run["step_kind"] != "call" or _may_train(tables):
        return
    ops = frame(tables, "cpu_ops").filter(pl.col("step").is_not_null())
    calls = ops.filter(pl.col("name") == marks.FORWARD, stance="compiled")
    if calls.is_empty() or ops["name"].str.contains(_BACKWARD).any():
        return
    regions = first_rank(rows(tables, "regions"))
    region = max(regions, key=lambda row: row["calls"] or 0, default=None)
    yield _finding(tables, joint, region, _autograd_ms(tables, calls))


def _may_train(tables: Tables) -> bool:
    """A backward was compiled, or the source holds one that this run may not have come to."""
    lazy = rows(tables, "compile_intervals", trigger="lazy_backward")
    return bool(lazy) or tables["backward_calls"].height > 0


def _finding(
    tables: Tables, joint: list[Row], region: Row | None, autograd_ms: float | None
) -> Finding:
    saved, count = _saved(tables)
    ms = _cost(tables, saved, autograd_ms)
    place = _called_at(region)
    name = region["name"] if region else "The compiled callable"
    return Finding(
        code=CODE,
        rule="ap-grad-inference",
        severity=_severity(tables, ms),
        title=f"{name} runs with gradients enabled, and no backward ever runs",
        explanation=(
            "Its graph was compiled for training: the forward writes and keeps what a backward "
            "would read, and every call goes through autograd."
        ),
        cost=Cost(ms, None, "autograd's part of the calls and writing what it saves, at most"),
        confidence="derived",
        location=place,
        evidence=tuple(_proof(joint, count, saved, autograd_ms)),
        what_to_do=(
            "Wrap the calls in torch.no_grad(), all of them: a change of the mode compiles again. "
            "Their results then carry no gradients."
        ),
        snippet=Snippet("python", "with torch.no_grad():\n    y = compiled(x)"),
        about=_places.about_region(region),
    )


def _severity(tables: Tables, ms: float | None) -> Severity:
    """A warning where it is dear: the figure is the most that it can be."""
    step = _costs.step_ms(tables, "compiled")
    return "warning" if ms and step and ms >= _costs.DEAR_SHARE * step else "info"


def _proof(
    joint: list[Row], count: int, saved: int | None, autograd_ms: float | None
) -> Iterator[Evidence]:
    text = f"compile {joint[0]['compile_id']}: a joint graph of forward and backward"
    yield from_row(text, "graphs", joint[0])
    yield Evidence("no backward ran in the profiled steps", "cpu_ops")
    if count and saved is not None and saved >= LEAST_BYTES:
        kept = f"{plural(count, 'tensor')} of {size(saved)} together"
        yield Evidence(f"a call keeps {kept} for the backward", "graphs")
    if autograd_ms is not None:
        text = f"autograd's part of the calls: {milliseconds(autograd_ms)} of a step"
        yield Evidence(text, "cpu_ops")


def _autograd_ms(tables: Tables, calls: pl.DataFrame) -> float | None:
    """Host time of a step in autograd's own part of compiled calls, on the step as timed."""
    counts = first(tables, "step_counts", stance="compiled")
    step = _costs.step_ms(tables, "compiled")
    if counts is None or step is None or not counts["steps"] or not counts["step_ms"]:
        return None
    # The median: a call that loses its processor meanwhile is no sample.
    median = float(calls.select(pl.col("self_ns").median()).item() or 0.0)
    each = median - 1e3 * (counts["event_cost_us"] or 0.0)
    profiled = max(0.0, each) * calls.height / 1e6 / float(counts["steps"])
    return profiled * min(1.0, step / float(counts["step_ms"]))


def _saved(tables: Tables) -> tuple[int | None, int]:
    """(bytes, tensors) that one call of every forward keeps beside its inputs and results."""
    forwards = first_rank(rows(tables, "graphs", kind="aot_forward"))
    joint = {row["compile_key"]: row for row in rows(tables, "graphs", kind="aot_joint")}
    sizes: list[int | None] = []
    for row in forwards:
        graph = read_graph(row["text"] or "")
        whole = joint.get(row["compile_key"])
        results = read_graph(whole["text"] or "").outputs if whole else frozenset()
        kept = {graph.base(name)[0] for name in graph.outputs - results if name in graph.nodes}
        sizes += [graph.nodes[name].bytes for name in kept if graph.nodes[name].op]
    return added(sizes) if sizes else 0, len(sizes)


def _cost(tables: Tables, saved: int | None, autograd_ms: float | None) -> float | None:
    rate = _gb_s(tables)
    if autograd_ms is None or saved is None or not rate:
        return autograd_ms
    return autograd_ms + saved / (rate * 1e6)


def _gb_s(tables: Tables) -> float | None:
    """At which saved tensors are written: the measured copy rate, else the dearest kernel's own."""
    copy = first(tables, "ceilings", kind="copy")
    if copy and copy["value"]:
        return float(copy["value"])
    kernels = [
        row
        for row in first_rank(rows(tables, "kernel_limits", stance="compiled"))
        if row["gb_s"] and row["category"].startswith("generated")
    ]
    return max(kernels, key=lambda row: row["ms"])["gb_s"] if kernels else None


def _called_at(region: Row | None) -> Location | None:
    """The user's line that calls the compiled callable; else where it was compiled."""
    return (_places.first_call(region) or _places.compile_call(region)) if region else None

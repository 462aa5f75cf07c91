"""
## What it finds
Compiled calls that prepare for a backward that never runs: inference with gradients enabled.

## Why it costs
The graph is split into a forward and a backward, the forward also writes what the backward would
read and keeps it until the result is freed, and each call goes through autograd. Passes for
inference (freezing, some fusions) and the cudagraphs' fast path are skipped.

## Evidence
A joint graph of forward and backward was traced, its compiled forward ran in the profiled steps,
and no backward ran or was compiled in the whole run. The rule is silent where the script has an
optimizer, or its source asks for gradients anywhere: the run may have been too short to get there.

The cost is what autograd takes for each call, and the time to write the saved tensors at the
measured copy rate (without one, at that of the slowest generated kernel): the most that these two
can save. Cudagraphs that are recorded again, for no other reason that torch logs, are added: torch
replays none as long as a backward may follow. A warning where that is 5 % of the step or more;
otherwise information.

## What to do
Call the model under `torch.no_grad()` (or `torch.inference_mode()`), in every call: a change of the
mode compiles again. Under `no_grad` the results no longer carry gradients.

## References
- https://docs.pytorch.org/docs/stable/notes/autograd.html
- https://docs.pytorch.org/docs/stable/generated/torch.no_grad.html
- torch/_functorch/_aot_autograd/graph_compile.py, `aot_stage2_autograd`
- torch/_inductor/cudagraph_trees.py, `can_start_new_generation`
- https://github.com/pytorch/pytorch/issues/110666
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from traceview.derive import causes
from traceview.derive.compiler.traffic import added
from traceview.derive.facts.rows import timed_scale
from traceview.rules._gain import idle_ms
from traceview.rules.kit import (
    NOTABLE_SHARE,
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    about_region,
    compile_call,
    first,
    first_call,
    first_rank,
    frame,
    from_row,
    milliseconds,
    plural,
    rows,
    size,
    step_ms,
)
from traceview.torchtext import marks
from traceview.torchtext.fx import read_graph

CODE = "TV412"
NEEDS = frozenset({"graphs", "runs", "cpu_ops", "backward_calls"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({causes.RECORDING})

#: What autograd's engine and a compiled backward are called in a profile.
_BACKWARD = marks.starting(marks.AUTOGRAD, marks.BACKWARD)
#: Fewer saved bytes are not worth a mention.
LEAST_BYTES = 2**20
_PENDING = (
    " Its cudagraphs are not replayed: as long as a backward may follow, torch takes each call for "
    "a part of the same step, and records one more."
)


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: at the call of the region that is called most."""
    run = first(tables, "runs")
    joint = first_rank(rows(tables, "graphs", kind="aot_joint"))
    if not joint or run is None or run["step_kind"] != "call":
        return
    # A backward was compiled, or the source has one that this run may not have come to.
    lazy = rows(tables, "compile_intervals", trigger="lazy_backward")
    if lazy or tables["backward_calls"].height:
        return
    ops = frame(tables, "cpu_ops").filter(pl.col("step").is_not_null())
    calls = ops.filter(pl.col("name") == marks.FORWARD, stance="compiled")
    if calls.is_empty() or ops["name"].str.contains(_BACKWARD).any():
        return

    proof = f"compile {joint[0]['compile_id']}: a joint graph of forward and backward"
    ms, details = _cost(tables, calls)
    # Where no other reason for it is in the log, cudagraphs are recorded again for this one.
    trees, again, made = (
        first_rank(rows(tables, "cudagraph_events", event=event))
        for event in ("tree", "rerecord", "record")
    )
    fits = len(trees) == 1 and not again
    recording = (idle_ms(tables, causes.RECORDING) or 0.0) if fits else 0.0
    if recording:
        ms = (ms or 0.0) + recording
        text = f"recording cudagraphs: {milliseconds(recording)} of a step, {len(made)} so far"
        details.append(Evidence(text, "cudagraph_events"))
    step = step_ms(tables, "compiled")
    regions = first_rank(rows(tables, "regions"))
    region = max(regions, key=lambda row: row["calls"] or 0, default=None)
    yield Finding(
        code=CODE,
        rule="ap-grad-inference",
        severity="warning" if ms and step and ms >= NOTABLE_SHARE * step else "info",
        title=(
            f"{region['name'] if region else 'The compiled callable'} runs with gradients "
            "enabled, and no backward ever runs"
        ),
        explanation=(
            "Its graph was compiled for training: the forward writes and keeps what a backward "
            "would read, and every call goes through autograd." + (_PENDING if recording else "")
        ),
        cost=Cost(ms, None, "autograd's part of the calls and writing what it saves, at most"),
        due_ms=recording,
        confidence="derived",
        location=(first_call(region) or compile_call(region)) if region else None,
        evidence=(
            from_row(proof, "graphs", joint[0]),
            Evidence("no backward ran in the profiled steps", "cpu_ops"),
            *details,
        ),
        what_to_do=(
            "Wrap all of the calls in torch.no_grad(): a change of the mode compiles again. "
            "Their results then carry no gradients."
        ),
        snippet=Snippet("python", "with torch.no_grad():\n    y = compiled(x)"),
        remedy=("no_grad",),
        about=about_region(region),
    )


def _cost(tables: Tables, calls: pl.DataFrame) -> tuple[float | None, list[Evidence]]:
    """Milliseconds of a step in autograd's part of compiled calls and in writing what it saves."""
    # Bytes that one call of every forward keeps, its inputs and results left out.
    joint = {row["compile_key"]: row for row in rows(tables, "graphs", kind="aot_joint")}
    sizes: list[int | None] = []
    for row in first_rank(rows(tables, "graphs", kind="aot_forward")):
        graph = read_graph(row["text"] or "")
        whole = joint.get(row["compile_key"])
        results = read_graph(whole["text"] or "").outputs if whole else frozenset()
        kept = {graph.base(name)[0] for name in graph.outputs - results if name in graph.nodes}
        sizes += [graph.nodes[name].bytes for name in kept if graph.nodes[name].op]
    saved, details = added(sizes) if sizes else 0, []
    if sizes and saved is not None and saved >= LEAST_BYTES:
        text = f"a call keeps {plural(len(sizes), 'tensor')} of {size(saved)} in all"
        details.append(Evidence(f"{text} for the backward", "graphs"))

    counts = first(tables, "step_counts", stance="compiled")
    scale = timed_scale(step_ms(tables, "compiled"), counts["step_ms"]) if counts else None
    if counts is None or scale is None or not counts["steps"]:
        return None, details
    # The median: a call that loses its CPU meanwhile is no sample.
    median = float(calls.select(pl.col("self_ns").median()).item() or 0.0)
    each = max(0.0, median - 1e3 * (counts["event_cost_us"] or 0.0))
    ms = each * calls.height / 1e6 / counts["steps"] * scale
    text = f"autograd's part of the calls: {milliseconds(ms)} of a step"
    details.append(Evidence(text, "cpu_ops"))

    # Saved tensors are written as fast as a copy, else as the slowest kernel's own rate.
    copy = first(tables, "ceilings", kind="copy")
    kernels = [
        row
        for row in first_rank(rows(tables, "kernel_limits", stance="compiled"))
        if row["gb_s"] and row["category"].startswith("generated")
    ]
    slowest = max(kernels, key=lambda row: row["ms"], default=None)
    rate = (copy and copy["value"]) or (slowest and slowest["gb_s"])
    return ms + (saved / (rate * 1e6) if saved is not None and rate else 0.0), details

"""
## What it finds
`mode="reduce-overhead"` (or "max-autotune") over code that cannot all be recorded: a tensor that
stays on the CPU, a second GPU, or an operator that no cudagraph may contain.

## Why it costs
A cudagraph replays work of one GPU and asks the host for nothing. torch skips the whole cudagraph,
or splits the graph and runs what it cannot record as before: each kernel is launched separately,
and a copy from the CPU's ordinary memory makes the host wait until it is done.

## Evidence
torch's message "skipping cudagraphs due to cpu device" (or "multiple devices", "incompatible op"),
or its list of graph partitions, which says why it does not record an operation, with the user's
line; it splits without a warning. A graph of one partition, or one split because the user's own
settings ask for it, is not reported. The cost is how long the GPU waits for launches, and for the
graph's own copies, in a compiled step: the most that recording could save.

## What to do
Move the tensor once, before the first call: `register_buffer`, so that the module moves it too, or
`device=` where it is created; an optimizer's own steps move with `capturable=True`. A Python number
may stay one. Keep what has to stay on the CPU, or on another GPU, outside of the compiled function.
`TORCHINDUCTOR_CUDAGRAPH_OR_ERROR=1` makes every graph that is not recorded an error; it does not
see a split.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_utils.py, `check_multiple_devices_or_any_cpu_nodes`
- torch/_inductor/scheduler.py, `should_partition`
- https://github.com/pytorch/pytorch/issues/119241
- https://github.com/pytorch/pytorch/issues/124506
- https://github.com/pytorch/pytorch/issues/193044
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from traceview.rules._gain import idle_ms
from traceview.rules.kit import (
    Cost,
    Finding,
    Location,
    Owners,
    Row,
    Tables,
    first,
    first_rank,
    from_row,
    plural,
    rows,
    severity,
    short,
    shorten,
    step_ms,
)
from traceview.torchtext.cudagraphs import partition_reason, partitions_without, skip_cause

CODE = "TV512"
NEEDS = frozenset({"compiles", "cudagraph_events"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True

_COPY_WAITS = ("idle_copy_wait", "idle_sync")
_SAVED = (
    "time of a compiled step in which the GPU waits for launches and for the graph's copies: the "
    "most it could save"
)
_MOVE = (
    "Move the tensor to the GPU once, before the first call: register_buffer in a module, device= "
    "where it is created, capturable=True in an optimizer. A Python number may stay one."
)
#: What keeps it out of a cudagraph → in words, and what to do.
_KINDS = {
    "copy": ("a copy between CPU and GPU", _MOVE),
    "cpu": ("work on the CPU", _MOVE),
    "devices": (
        "more than one device",
        "Compile one function for each device, and move tensors between them outside.",
    ),
    "operator": (
        "an operator that cannot be recorded",
        "Call the operator outside of the compiled function, or write it another way.",
    ),
    "unbacked": (
        "a size that depends on data",
        "Keep it at one size, with a mask instead of a selection, or compute it outside.",
    ),
    "cond": (
        "torch.cond",
        "Compute both branches and choose with torch.where, where that is cheap.",
    ),
}


class _Skipped(NamedTuple):
    """One operation, or one whole graph, without a cudagraph."""

    table: str
    row: Row
    text: str
    place: Location | None
    what: str
    remedy: str


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each function that was not recorded, or only in parts."""
    owners = Owners(tables)
    found: dict[tuple[object, ...], list[_Skipped]] = {}
    # Operations in partitions without a cudagraph, of graphs that were to be recorded; and whole
    # graphs: the log's lines with the user's, else what the compile's metrics kept.
    parts = first_rank(rows(tables, "cudagraph_events", event="partition"))
    logged = first_rank(rows(tables, "cudagraph_events", event="skip"))
    known = {row["compile_key"] for row in logged}
    placed = {row["compile_key"] for row in logged if row["user_file"]}
    kept = [row for row in logged if row["user_file"] or row["compile_key"] not in placed]
    metrics = [
        row
        for row in first_rank(rows(tables, "compiles"))
        if row["cudagraph_skip_reason"] and row["compile_key"] not in known
    ]
    for table, row in (
        *(("cudagraph_events", row) for row in kept),
        *(("compiles", row) for row in metrics),
        *(("cudagraph_events", row) for row in parts if partition_reason(row["reason"] or "")),
    ):
        text = row["reason" if table == "cudagraph_events" else "cudagraph_skip_reason"] or ""
        if kind := _KINDS.get(skip_cause(text) or ""):
            spot = owners.spot(row) if table == "cudagraph_events" else owners.code(row)
            key = tuple(sorted(owners.about_compiles(row))) or (row["compile_key"],)
            found.setdefault(key, []).append(_Skipped(table, row, text, spot.place, *kind))

    # Idle time that a recorded graph would not have: no more than the step less its kernels.
    cost = Cost(about="the launches that a cudagraph would replace; not measured")
    launch, step = idle_ms(tables, "launch"), step_ms(tables, "compiled")
    counts = first(tables, "step_counts", stance="compiled")
    if launch is not None and counts is not None and step is not None:
        details = first_rank(rows(tables, "account_details", stance="compiled", clock="device"))
        copies = sum(
            row["ms"] or 0.0
            for row in details
            if row["category"] in _COPY_WAITS and row["in_graph"]
        )
        most = min(launch + copies, max(0.0, step - (counts["device_busy_ms"] or 0.0)))
        cost = Cost(ms_per_step=most, about=_SAVED)
    for group in found.values():
        yield _finding(tables, owners, group, cost)


def _finding(tables: Tables, owners: Owners, group: list[_Skipped], cost: Cost) -> Finding:
    lines = [place for place, _ in Counter(one.place for one in group if one.place).most_common()]
    place = lines[0] if lines else None
    shown = [one for one in group if one.place == place]
    key, split = shown[0].row["compile_key"], partition_reason(shown[0].text) is not None
    parts = [
        (row, without)
        for row in first_rank(rows(tables, "cudagraph_events", event="partition", compile_key=key))
        if (without := partitions_without(row["reason"] or "")) is not None
    ]
    explanation = (
        "A cudagraph contains work of one GPU and nothing else, so torch records none of this "
        "graph. The mode's launches are made one at a time."
    )
    if split:
        pieces = plural(sum(row["count"] or 0 for row, _ in parts), "part")
        without = sum(count for _, count in parts)
        operations = sum(1 for one in group if one.row["compile_key"] == key)
        explanation = (
            f"torch split the graph into {pieces} and records no cudagraph for {without} of them, "
            f"because of {plural(operations, 'operation')}. Only its log says so. What it does not "
            "record is launched one kernel at a time, and copies make the host wait."
        )
    return Finding(
        code=CODE,
        rule="cg-skip-cpu",
        severity=severity(tables, cost.ms_per_step),
        title=(
            f"No cudagraph{' for part of a graph' if split else ''}: {shown[0].what} at "
            f"{short(place)}"
        ),
        explanation=explanation,
        cost=cost,
        confidence="heuristic" if cost.ms_per_step is None else "derived",
        location=place,
        about=owners.about_compiles(*(one.row for one in group)),
        evidence=(
            *(from_row(shorten(one.text), one.table, one.row) for one in shown[:2]),
            *(from_row(shorten(row["reason"]), "cudagraph_events", row) for row, _ in parts[:1]),
        ),
        what_to_do=shown[0].remedy,
        also_at=tuple(lines[1:4]),
    )

"""
## What it finds
`mode="reduce-overhead"` (or "max-autotune") over code of which some cannot be recorded: a tensor
that stays on the CPU, a second GPU, or an operator that no cudagraph may hold.

## Why it costs
A cudagraph replays work of one GPU and asks the host for nothing. torch leaves out the whole
cudagraph, or splits the graph and runs what it cannot record as before: it launches one by one, and
a copy from the CPU's ordinary memory has the host wait until it is done.

## Evidence
torch's message "skipping cudagraphs due to cpu device" (or "multiple devices", "incompatible op"),
or its list of graph partitions, which says why it does not record an operation, with the user's
line; it splits without a warning. A graph of one partition, or one split where the user's own
settings ask for it, is not meant. The cost is what the GPU waits for launches, and for the graph's
own copies, in a compiled step: the most that recording could save.

## What to do
Move the tensor once, before the first call: `register_buffer`, so that the module takes it along,
or `device=` where it is made; an optimizer's own steps move with `capturable=True`. A Python number
may stay one. Keep what has to stay on the CPU, or on another GPU, outside of the compiled function.
`TORCHINDUCTOR_CUDAGRAPH_OR_ERROR=1` makes an error of every graph that is not recorded; it does not
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

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from traceview.rules import _costs, _places
from traceview.rules._evidence import from_row
from traceview.rules._gain import idle_ms
from traceview.rules._rows import Row, first, first_rank, rows
from traceview.rules.finding import Confidence, Cost, Evidence, Finding, Location
from traceview.tables import Tables
from traceview.words.numbers import plural
from traceview.words.text import shorten

CODE = "TV512"
NEEDS = frozenset({"compiles", "cudagraph_events"})
GPU_ONLY = True

_CREATED = re.compile(r"^Created \d+ graph partitions: \d+ cudagraphable, (?P<without>\d+) non-")
_WHY = re.compile(r"\breason=(?P<why>.+?), ir=")
_COPY_WAITS = ("idle_copy_wait", "idle_sync")


class _Kind(msgspec.Struct, frozen=True):
    """One reason: how torch's words show it, how it is said, and what to do."""

    words: re.Pattern[str]
    what: str
    remedy: str


_MOVE = (
    "Move the tensor to the GPU once, before the first call: register_buffer in a module, device= "
    "where it is made, capturable=True in an optimizer. A Python number may stay one."
)
_KINDS = (
    _Kind(re.compile(r"DeviceCopy ops"), "a copy between CPU and GPU", _MOVE),
    _Kind(re.compile(r"cpu device|\bcpu ops"), "work on the CPU", _MOVE),
    _Kind(
        re.compile(r"multiple devices"),
        "more than one device",
        "Compile one function for each device, and move tensors between them outside.",
    ),
    _Kind(
        re.compile(r"incompatible op|CUDAGraph-unsafe|cudagraph-unsafe"),
        "an operator that cannot be recorded",
        "Call the operator outside of the compiled function, or write it another way.",
    ),
    _Kind(
        re.compile(r"unbacked binding ops"),
        "a size that depends on data",
        "Keep it at one size, with a mask in place of a selection, or compute it outside.",
    ),
    _Kind(
        re.compile(r"Conditional ops"),
        "torch.cond",
        "Compute both branches and choose with torch.where, where that is cheap.",
    ),
)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a function that was not recorded, or only in parts."""
    owners = _places.Owners(tables)
    found: dict[tuple[object, ...], list[tuple[str, Row, _Kind]]] = {}
    for table, row in (*_skips(tables), *_splits(tables)):
        kind = next((one for one in _KINDS if one.words.search(_reason(row))), None)
        if kind is not None:
            key = tuple(sorted(owners.about_compiles(row))) or (row["compile_key"],)
            found.setdefault(key, []).append((table, row, kind))
    for group in found.values():
        yield _finding(tables, owners, group)


def _skips(tables: Tables) -> list[tuple[str, Row]]:
    """The log's lines with the user's, else what the compile's metrics kept."""
    logged = first_rank(rows(tables, "cudagraph_events", event="skip"))
    placed = {row["compile_key"] for row in logged if row["user_file"]}
    known = {row["compile_key"] for row in logged}
    kept = [row for row in logged if row["user_file"] or row["compile_key"] not in placed]
    metrics = [
        row
        for row in first_rank(rows(tables, "compiles"))
        if row["cudagraph_skip_reason"] and row["compile_key"] not in known
    ]
    return [*(("cudagraph_events", row) for row in kept), *(("compiles", row) for row in metrics)]


def _splits(tables: Tables) -> list[tuple[str, Row]]:
    """Operations in partitions without a cudagraph, of graphs that were to be recorded."""
    parts = first_rank(rows(tables, "cudagraph_events", event="partition"))
    return [("cudagraph_events", row) for row in parts if _WHY.search(row["reason"] or "")]


def _reason(row: Row) -> str:
    text = row.get("reason") or row.get("cudagraph_skip_reason") or ""
    found = _WHY.search(text)
    return found["why"] if found else text


def _finding(
    tables: Tables, owners: _places.Owners, group: list[tuple[str, Row, _Kind]]
) -> Finding:
    places = [_place(owners, table, row) for table, row, _ in group]
    lines = [place for place, _ in Counter(filter(None, places)).most_common()]
    place = lines[0] if lines else None
    _, row, kind = group[places.index(place)]
    same = [one for _, one, _ in group if one["compile_key"] == row["compile_key"]]
    parts = _partitions(tables, row["compile_key"])
    cost, confidence = _cost(tables)
    split = bool(_WHY.search(row.get("reason") or ""))
    how = "No cudagraph for part of a graph" if split else "No cudagraph"
    shown = [pair for pair, at in zip(group, places, strict=True) if at == place][:2]
    return Finding(
        code=CODE,
        rule="cg-skip-cpu",
        severity=_costs.severity(tables, cost.ms_per_step),
        title=f"{how}: {kind.what} at {_places.short(place)}",
        explanation=_explanation(len(same), parts) if split else _WHOLE,
        cost=cost,
        confidence=confidence,
        location=place,
        about=owners.about_compiles(*(entry for _, entry, _ in group)),
        evidence=(
            *(_proof(name, entry) for name, entry, _ in shown),
            *(from_row(shorten(part["reason"]), "cudagraph_events", part) for part in parts[:1]),
        ),
        what_to_do=kind.remedy,
        also_at=tuple(lines[1:4]),
    )


_WHOLE = (
    "A cudagraph holds work of one GPU and nothing else, so torch records none of this graph. The "
    "mode's launches are made one by one."
)


def _explanation(operations: int, parts: list[Row]) -> str:
    pieces = sum(row["count"] or 0 for row in parts)
    without = sum(
        int(found["without"]) for row in parts if (found := _CREATED.match(row["reason"]))
    )
    return (
        f"torch split the graph into {plural(pieces, 'part')} and records no cudagraph for "
        f"{without} of them, because of {plural(operations, 'operation')}. It says so in its log "
        "only. What it does not record is launched one by one, and copies have the host wait."
    )


def _partitions(tables: Tables, compile_key: str | None) -> list[Row]:
    found = first_rank(rows(tables, "cudagraph_events", event="partition", compile_key=compile_key))
    return [row for row in found if _CREATED.match(row["reason"] or "")]


def _place(owners: _places.Owners, table: str, row: Row) -> Location | None:
    spot = owners.spot(row) if table == "cudagraph_events" else owners.code(row)
    return spot.place


def _proof(table: str, row: Row) -> Evidence:
    text = row["reason"] if table == "cudagraph_events" else row["cudagraph_skip_reason"]
    return from_row(shorten(text), table, row)


def _cost(tables: Tables) -> tuple[Cost, Confidence]:
    """Idle time that a recorded graph would not have: no more than the step less its kernels."""
    launch = idle_ms(tables, "launch")
    counts = first(tables, "step_counts", stance="compiled")
    step = _costs.step_ms(tables, "compiled")
    if launch is None or counts is None or step is None:
        about = "the launches that a cudagraph would have replaced; not measured"
        return Cost(about=about), "heuristic"
    most = min(launch + _copies_ms(tables), max(0.0, step - (counts["device_busy_ms"] or 0.0)))
    about = "time of a compiled step in which the GPU waits for launches and for the graph's copies"
    return Cost(ms_per_step=most, about=f"{about}: the most it could save"), "derived"


def _copies_ms(tables: Tables) -> float:
    """Idle time at copies and synchronisation in compiled graphs."""
    details = first_rank(rows(tables, "account_details", stance="compiled", clock="device"))
    inside = (row for row in details if row["category"] in _COPY_WAITS and row["in_graph"])
    return float(sum(row["ms"] or 0.0 for row in inside))

"""The collector's own events (``raw/PASS/events-*.jsonl``) and what the manifest says of the pass.

Nothing is taken for granted: a process may have been killed in the middle of a line, may never have
written ``end``, may be one of many ranks, and a later collector may write events unknown here. A
value of the wrong type becomes null, never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from traceview.parse.collected.events import Process, read_process, read_processes
from traceview.parse.collected.runs import run_rows
from traceview.parse.damage import Damage
from traceview.run import PassRecord, Run
from traceview.tables import from_rows, spec_of

Row = dict[str, Any]
_INTEGER_LIMIT = {pl.Int32: 2**31, pl.Int64: 2**63}
_CALL_COLUMNS = ("call_index", "step", "started_us", "host_ms", "compiles_inside", "outermost")
#: Tables that a run has only where there was such an event.
_OPTIONAL = (
    ("ceilings", "ceiling"),
    ("resets", "reset"),
    ("pattern_counts", "graph_pass"),
    ("guard_timings", "guard_timing"),
    ("output_trials", "output_trial"),
    ("output_checks", "output_check"),
)
_STEP_COLUMNS = ("step", "started_us", "host_ms", "compiles_inside")


def read_pass(run: Run, record: PassRecord, damage: Damage) -> dict[str, pl.DataFrame]:
    """Tables runs, environment, regions, blocks, steps, calls, compile_intervals, memory,
    profile_windows, sources and notes of one pass; input_sizes and those of ``_OPTIONAL`` where
    there was any; ``runs`` alone if no process wrote an event.
    """
    processes = read_processes(run.raw(record), record.raw, damage)
    if not processes:
        return {"runs": _table("runs", run_rows(record, processes))}
    return _tables(record, processes, damage)


def read_file(path: Path, name: str, damage: Damage) -> dict[str, pl.DataFrame]:
    """The same of one event file alone; how the process ended is known by its own word only."""
    process = read_process(path, name, damage)
    raw = name.rpartition("/")[0]
    return _tables(PassRecord("logs", raw), [process], damage) if process.events else {}


def _tables(
    record: PassRecord, processes: list[Process], damage: Damage
) -> dict[str, pl.DataFrame]:
    tables = {"runs": _table("runs", run_rows(record, processes))}
    rows: dict[str, list[Row]] = {
        "environment": list(_plain(record, processes, "setting")),
        "regions": list(_regions(record, processes)),
        "blocks": list(_plain(record, processes, "block")),
        "steps": list(_batches(record, processes, "steps", _STEP_COLUMNS, damage)),
        "calls": list(_batches(record, processes, "calls", _CALL_COLUMNS, damage)),
        "compile_intervals": list(_plain(record, processes, "compile")),
        "memory": list(_plain(record, processes, "memory")),
        "profile_windows": list(_windows(record, processes)),
        "sources": list(_sources(record, processes)),
        "notes": list(_plain(record, processes, "note")),
    }
    if sizes := list(_input_sizes(record, processes)):
        rows["input_sizes"] = sizes
    for name, kind in _OPTIONAL:
        if found := list(_plain(record, processes, kind)):
            rows[name] = found
    return tables | {name: _table(name, found) for name, found in rows.items()}


def _head(record: PassRecord, process: Process) -> Row:
    return {"pass": record.name, "rank": process.rank, "pid": process.pid}


def _plain(record: PassRecord, processes: list[Process], kind: str) -> Iterator[Row]:
    """Events whose keys are the columns."""
    for process in processes:
        head = _head(record, process)
        yield from ({**event, **head} for event in process.of(kind))


def _windows(record: PassRecord, processes: list[Process]) -> Iterator[Row]:
    for row in _plain(record, processes, "profile"):
        file = f"{record.raw}/{row['file']}" if row.get("file") else None
        yield {"purpose": "time", **row, "file": file}


def _batches(
    record: PassRecord,
    processes: list[Process],
    kind: str,
    columns: tuple[str, ...],
    damage: Damage,
) -> Iterator[Row]:
    """The rows of batch events (``calls``, ``steps``): lists, named by ``columns``."""
    for process in processes:
        head, file = _head(record, process), f"{record.raw}/events-{process.pid}.jsonl"
        for event in process.of(kind):
            shared = {key: event.get(key) for key in ("region_id", "phase", "stance")}
            rows = event.get("rows")
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, list) and len(row) >= len(columns):
                    yield {**shared, **dict(zip(columns, row, strict=False)), **head}
                else:
                    damage.count(file, "bad_event", None, f"{kind}: {row!r}"[:200])


def _regions(record: PassRecord, processes: list[Process]) -> Iterator[Row]:
    """A region's ``torch.compile`` call with its first call and its last totals.

    Where the totals never came (the process was killed), ``calls`` are counted from the batches: a
    lower bound, timed blocks not included.
    """
    for process in processes:
        first: dict[object, Row] = {}
        for event in process.of("first_call"):
            first.setdefault(event.get("region_id"), event)
        totals = {event.get("region_id"): event for event in process.of("region_end")}
        for region in process.of("region"):
            key = region.get("region_id")
            call, total = first.get(key, {}), totals.get(key)
            yield {
                **region,
                **(total if total is not None else _counted(process, key)),
                "kind": region.get("kind"),
                "first_call_ms": call.get("host_ms"),
                "first_call_stack": call.get("stack"),
                **_head(record, process),
            }


def _input_sizes(record: PassRecord, processes: list[Process]) -> Iterator[Row]:
    """What the last totals of each region say of the sizes that it was called with."""
    for process in processes:
        totals = {event.get("region_id"): event for event in process.of("region_end")}
        for region_id, total in totals.items():
            counted = total.get("input_sizes")
            for pair in counted if isinstance(counted, list) else ():
                if isinstance(pair, list) and len(pair) == len(("sizes", "calls")):
                    row = {"region_id": region_id, "sizes": pair[0], "calls": pair[1]}
                    yield row | _head(record, process)


def _counted(process: Process, region_id: object) -> Row:
    batches = [e.get("rows") for e in process.of("calls") if e.get("region_id") == region_id]
    lists = (row for batch in batches if isinstance(batch, list) for row in batch)
    rows = [row for row in lists if isinstance(row, list)]
    called = any(e.get("region_id") == region_id for e in process.of("first_call"))
    outermost = [row for row in rows if len(row) > 5 and row[5] is True]
    return {
        "calls": max(len(rows), int(called)),
        "outermost_calls": len(outermost) if rows else None,
    }


def _sources(record: PassRecord, processes: list[Process]) -> Iterator[Row]:
    """One row a file, however many processes kept it."""
    seen: set[object] = set()
    for process in processes:
        for event in process.of("source"):
            if isinstance(event.get("file"), str) and event["file"] not in seen:
                seen.add(event["file"])
                yield {**event, **_head(record, process)}


def _table(name: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Table ``name``; of every row the declared columns, each as its dtype or null."""
    schema = spec_of(name).polars_schema.items()
    declared = ({name: _as(dtype, row.get(name)) for name, dtype in schema} for row in rows)
    return from_rows(name, declared)


def _as(dtype: Any, value: Any) -> Any:  # noqa: ANN401
    if value is None:
        return None
    if dtype == pl.String:
        nested = isinstance(value, (list, dict))
        return msgspec.json.encode(value).decode() if nested else str(value)
    if dtype == pl.Boolean:
        return value if isinstance(value, bool) else None
    if isinstance(dtype, pl.List):
        items = value if isinstance(value, list) else ()
        return [item for item in items if isinstance(item, str)]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if dtype == pl.Float64:
        return float(value)
    whole = int(value) if value == value and abs(value) != float("inf") else None
    return whole if whole is not None and abs(whole) < _INTEGER_LIMIT[dtype] else None

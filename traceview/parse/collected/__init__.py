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

from traceview.parse.collected.events import (
    Process,
    is_count,
    read_process,
    read_processes,
)
from traceview.parse.collected.replays import profiled
from traceview.parse.damage import Damage
from traceview.run import PassRecord, Run
from traceview.tables import from_rows, spec_of

Row = dict[str, Any]
#: Each process, and the columns that all its rows have.
Owners = list[tuple[Process, Row]]
_INTEGER_LIMIT = {pl.Int32: 2**31, pl.Int64: 2**63}
_FLOAT_LIMIT = 1e18  # no time and no size is as large; infinities and NaN are not below it
_CALL_COLUMNS = ("call_index", "step", "started_us", "host_ms", "compiles_inside", "outermost")
#: Tables that a run has only where there was such an event.
_OPTIONAL = (
    ("ceilings", "ceiling"),
    ("shape_trials", "shape_trial"),
    ("form_trials", "form_trial"),
    ("resets", "reset"),
    ("module_copies", "module_copies"),
    ("job_lengths", "job_length"),
    ("compile_lines", "compile_line"),
    ("pattern_counts", "graph_pass"),
    ("guard_timings", "guard_timing"),
    ("thread_looks", "thread_look"),
    ("thread_blocks", "thread_block"),
    ("threads_seen", "thread_seen"),
    ("loader_starts", "loader_start"),
    ("collect_calls", "collect_call"),
    ("end_checks", "end_check"),
    ("output_trials", "output_trial"),
    ("output_checks", "output_check"),
    ("output_faults", "output_fault"),
)
_SHARED = ("region_id", "anchor_region_id", "phase", "stance")
_STEP_COLUMNS = ("step", "started_us", "host_ms", "compiles_inside")
_SERVED_COLUMNS = ("user_stance", "after_modes", "calls", "eager_calls", "eager_sizes")
_ERROR_CHARACTERS = 4096
_ERROR_COLUMNS = ("type", "file", "line", "function", "stack", "stance")
_TORCH_COLUMNS = (
    "torch_version",
    "triton_version",
    "cuda_version",
    "driver_version",
    "device_count",
    "device_memory_bytes",
    "device_capability",
    "cpu_name",
    "cpu_threads",
    "cpu_count",
)


def read_pass(run: Run, record: PassRecord, damage: Damage) -> dict[str, pl.DataFrame]:
    """Tables runs, environment, regions, blocks, steps, calls, compile_intervals, memory,
    profile_windows, sources, notes, compile_targets, late_hooks, frozen_weights, lost_weights and
    untrained_weights of one pass; input_sizes, served_calls and those of ``_OPTIONAL`` where there
    was any; ``runs`` alone if no process wrote an event.
    """
    processes = read_processes(run.raw(record), record.raw, damage)
    if not processes:
        return {"runs": table_of("runs", run_rows(record, processes))}
    return _tables(record, processes, damage)


def read_file(path: Path, name: str, damage: Damage) -> dict[str, pl.DataFrame]:
    """The same of one event file alone; how the process ended is known by its own word only."""
    process = read_process(path, name, damage)
    raw = name.rpartition("/")[0]
    return _tables(PassRecord("logs", raw), [process], damage) if process.events else {}


def _tables(
    record: PassRecord, processes: list[Process], damage: Damage
) -> dict[str, pl.DataFrame]:
    heads = [{"pass": record.name, "rank": each.rank, "pid": each.pid} for each in processes]
    owners = list(zip(processes, heads, strict=True))
    windows = [
        {"purpose": "time", **event, **head}
        for process, head in owners
        for event in profiled(process)
    ]
    for row in windows:
        row["file"] = f"{record.raw}/{row['file']}" if row.get("file") else None
    sources: dict[str, Row] = {}  # one row a file, however many processes kept it
    for row in _plain(owners, "source"):
        if isinstance(row.get("file"), str):
            sources.setdefault(row["file"], row)
    rows: dict[str, Iterable[Row]] = {
        "runs": run_rows(record, processes),
        "environment": _plain(owners, "setting"),
        "regions": _regions(owners),
        "blocks": _plain(owners, "block"),
        "steps": _batches(owners, "steps", _STEP_COLUMNS, record.raw, damage),
        "calls": _batches(owners, "calls", _CALL_COLUMNS, record.raw, damage),
        "compile_intervals": _plain(owners, "compile"),
        "memory": _plain(owners, "memory"),
        "profile_windows": windows,
        "sources": sources.values(),
        "notes": _plain(owners, "note"),
        "compile_targets": _plain(owners, "target"),
        "late_hooks": _plain(owners, "late_hook"),
        "frozen_weights": _plain(owners, "frozen_weights"),
        "lost_weights": _plain(owners, "lost_weights"),
        "untrained_weights": _plain(owners, "untrained_weight"),
    }
    optional = {name: _plain(owners, kind) for name, kind in _OPTIONAL}
    optional["input_sizes"] = _totals(owners, "input_sizes", ("sizes", "calls"))
    optional["served_calls"] = _totals(owners, "served", _SERVED_COLUMNS)
    rows |= {name: found for name, each in optional.items() if (found := list(each))}
    return {name: table_of(name, found) for name, found in rows.items()}


def _plain(owners: Owners, kind: str) -> Iterator[Row]:
    """Events whose keys are the columns."""
    return ({**event, **head} for process, head in owners for event in process.of(kind))


def _batches(
    owners: Owners, kind: str, columns: tuple[str, ...], raw: str, damage: Damage
) -> Iterator[Row]:
    """The rows of batch events (``calls``, ``steps``): lists, named by ``columns``."""
    for process, head in owners:
        file = f"{raw}/events-{process.pid}.jsonl"
        for event in process.of(kind):
            shared = {key: event.get(key) for key in _SHARED}
            rows = event.get("rows")
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, list) and len(row) >= len(columns) and is_count(row[0]):
                    yield {**shared, **dict(zip(columns, row, strict=False)), **head}
                else:
                    damage.count(file, "bad_event", None, f"{kind}: {row!r}"[:200])


def _regions(owners: Owners) -> Iterator[Row]:
    """A region's ``torch.compile`` call with its first call and its last totals.

    Where the totals never came (the process was killed), ``calls`` are counted from the batches: a
    lower bound, timed blocks not included.
    """
    for process, head in owners:
        first: dict[object, Row] = {}
        for event in process.of("first_call"):
            first.setdefault(event.get("region_id"), event)
        totals = {event.get("region_id"): event for event in process.of("region_end")}
        for region in process.of("region"):
            key = region.get("region_id")
            call, total = first.get(key), totals.get(key)
            if total is None:
                batches = (e.get("rows") for e in process.of("calls") if e.get("region_id") == key)
                lists = (row for batch in batches if isinstance(batch, list) for row in batch)
                rows = [row for row in lists if isinstance(row, list)]
                outermost = [row for row in rows if len(row) > 5 and row[5] is True]
                total = {
                    "calls": max(len(rows), int(call is not None)),
                    "outermost_calls": len(outermost) if rows else None,
                }
            yield {
                **region,
                **total,
                "kind": region.get("kind"),
                "first_call_ms": call.get("host_ms") if call else None,
                "first_call_stack": call.get("stack") if call else None,
                **head,
            }


def _totals(owners: Owners, kind: str, columns: tuple[str, ...]) -> Iterator[Row]:
    """What the last totals of each region list as ``kind``: lists, named by ``columns``."""
    for process, head in owners:
        totals = {event.get("region_id"): event for event in process.of("region_end")}
        for region_id, total in totals.items():
            counted = total.get(kind)
            for each in counted if isinstance(counted, list) else ():
                if isinstance(each, list) and len(each) == len(columns):
                    yield {"region_id": region_id, **dict(zip(columns, each, strict=True)), **head}


def table_of(name: str, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Table ``name``; of every row the declared columns, each as its dtype or null."""
    schema = spec_of(name).polars_schema.items()
    declared = ({name: _as(dtype, row.get(name)) for name, dtype in schema} for row in rows)
    return from_rows(name, declared)


def _as(dtype: Any, value: Any) -> Any:  # noqa: ANN401
    if value is None:
        return None
    if dtype == pl.String:
        if not isinstance(value, (list, dict)):
            return str(value)
        try:
            return msgspec.json.encode(value).decode()
        except RecursionError:  # it nests too deeply
            return None
    if dtype == pl.Boolean:
        return value if isinstance(value, bool) else None
    if isinstance(dtype, pl.List):
        text = dtype.inner == pl.String
        items = value if isinstance(value, list) else ()
        kept = (_as(dtype.inner, item) for item in items if isinstance(item, str) == text)
        return [item for item in kept if item is not None]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if dtype == pl.Float64:
        return float(value) if abs(value) < _FLOAT_LIMIT else None
    whole = int(value) if value == value and abs(value) != float("inf") else None
    return whole if whole is not None and abs(whole) < _INTEGER_LIMIT[dtype] else None


def run_rows(record: PassRecord, processes: list[Process]) -> list[dict[str, Any]]:
    """One row a process; one from the manifest alone where no process lived to write an event."""
    if not processes:
        return [{"pass": record.name, "started_us": record.started_us, **_manifest_ending(record)}]
    rows = []
    for process in processes:
        began, torch = process.merged("process"), process.merged("torch")
        end, steady, error = process.merged("end"), process.merged("steady"), process.last("error")
        message, quiet = error.get("message"), steady.get("never_quiet")
        # Written when steps are steady; null where that never came.
        settings = [s for s in process.of("setting") if s.get("name") == "grad_enabled_steps"]
        grad_enabled = str(settings[-1].get("value")) if settings else None
        alone = len(processes) == 1
        ending = _manifest_ending(record) if alone else _own_ending(record, process)
        row = {
            "pass": record.name,
            "rank": process.rank,
            "pid": process.pid,
            "started_us": began.get("t", process.first_us),
            **ending,
            **{f"error_{name}": error.get(name) for name in _ERROR_COLUMNS},
            "error_message": message[:_ERROR_CHARACTERS] if isinstance(message, str) else None,
            "python_version": began.get("python"),
            "platform": began.get("platform"),
            "argv": began.get("argv"),
            "cwd": began.get("cwd"),
            **{name: torch.get(name) for name in _TORCH_COLUMNS},
            "device_name": torch.get("device_name", "cpu" if torch else None),
            # How far the plan came, from what the process still could write.
            "step_kind": end.get("step_kind", steady.get("step_kind")),
            "steps_seen": end.get("steps_seen", _steps_seen(process)),
            "quiet_after_step": None if quiet is True else steady.get("step"),
            "never_quiet": quiet,
            "plan_complete": any(done.get("complete", True) is True for done in process.of("done")),
            "user_stance": process.merged("stance").get("stance"),
            "dynamo_disabled": bool(process.of("disabled")),
            "grad_enabled_steps": {"True": True, "False": False}.get(grad_enabled or ""),
        }
        rows.append(row)
    return rows


def _steps_seen(process: Process) -> int | None:
    """Steps that events name, for a process killed before it could count them; null for none."""
    ends: list[int] = []
    for event in process.of("steps"):
        rows = event.get("rows")
        if isinstance(rows, list):
            firsts = (row[0] for row in rows if isinstance(row, list) and row)
            ends.extend(step + 1 for step in firsts if isinstance(step, int))
    for block in process.of("block"):
        first, steps = block.get("first_step"), block.get("steps")
        if isinstance(first, int) and isinstance(steps, int):
            ends.append(first + steps)
    return max(ends, default=None)


def _manifest_ending(record: PassRecord) -> dict[str, Any]:
    """What the parent saw: right for the only process, or for launcher and ranks as a whole."""
    ending = record.ending
    return {
        "wall_s": ending.wall_s,
        "exit_kind": ending.kind,
        "exit_code": ending.code,
        "exit_signal": ending.signal,
    }


def _own_ending(record: PassRecord, process: Process) -> dict[str, Any]:
    """One of several processes: orderly by its own word, else as the whole launch ended."""
    first, last = process.first_us, process.last_us
    lived_s = None if first is None or last is None else (last - first) / 1e6
    if not process.of("end"):
        return _manifest_ending(record) | {"wall_s": lived_s}
    stopped = process.merged("done").get("stopping") is True
    clean = record.ending.kind == "exit" and record.ending.code == 0
    return {
        "wall_s": lived_s,
        "exit_kind": "stopped" if stopped else "exit",
        "exit_code": 0 if clean else None,
        "exit_signal": None,
    }

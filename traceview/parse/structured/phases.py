"""Compile phases: chromium_event B and E, matched as one stack a process.

torch writes ``tid`` 0 and ``pid`` 0 always, so threads can't be distinguished: an E closes the
innermost open B of its name and compile. What is open above it then belongs to another thread or
has lost its E: it is set aside, where a later E may still find it, and no longer a parent.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import Any

import msgspec

from traceview.json_errors import NOT_JSON
from traceview.parse.cutting import Record
from traceview.parse.payloads.metrics import FIELDS, Event, dynamo_row
from traceview.parse.structured.caches import disabled_cache
from traceview.parse.structured.decode import as_text, decode, json_object
from traceview.parse.structured.state import MAY_REPEAT, Compile, OpenPhase, Process, Reader
from traceview.torchtext.autotuning import best_choices


class _Arguments(msgspec.Struct):
    args: msgspec.Raw = msgspec.Raw(b"{}")


_ARGUMENTS = msgspec.json.Decoder(_Arguments)
_DYNAMO = "dynamo"
_WHOLE = frozenset((_DYNAMO, "entire_frame_compile"))
_OPENINGS = _WHOLE | MAY_REPEAT | {"compile_attempt_0"}
_AUTOTUNED = "_template_autotuning"
_SEARCHED = 1000  # open phases looked at: real logs nest some thirty deep


def chromium_event(reader: Reader, record: Record) -> None:
    """``{"name", "ts", "ph": "B" | "E" | "i", "args": {…}}``; most instants are counted only."""
    event = record.told
    if not isinstance(event, Event):
        found = decode(reader, record, record.raw, FIELDS)
        if found is None:
            return
        event = Event(found.name, found.ph, found.ts)
    process = reader.process
    if not process.clock.fixed:
        process.clock.observe(record.stamp, event.ts)
    if event.ph == "i":
        disabled_cache(reader, record, event.name)
    elif event.ph == "B":
        opening = event.name if event.name in _OPENINGS else None
        compile = process.find(record, opening=opening)
        if opening == _DYNAMO and compile is not None and compile.started_us is None:
            compile.started_us = event.ts
        _begin(process, record, compile, event)
    elif event.ph == "E":
        compile = process.find(record)
        _end(process, event, compile)
        if event.name in _WHOLE and compile is not None:
            compile.closed = record.stamp
        if event.name == _DYNAMO and compile is not None:
            if event.row is None:
                try:
                    event.row = dynamo_row(record.raw)
                except NOT_JSON:
                    _arguments(reader, record)  # it counts what is wrong
            compile.dynamo_event = event.row or {}
            if compile.started_us is not None and event.ts >= compile.started_us:
                compile.dynamo_event.setdefault("duration_us", event.ts - compile.started_us)
        elif event.name.endswith(_AUTOTUNED):
            autotuned(reader, record, compile, _arguments(reader, record), event.name)


def triton_kernels(reader: Reader, record: Record) -> None:
    """``{kernel: {"compile_time_us": …}}``: Triton's time for each kernel, mostly in workers.

    torch gives no start, and a process's own ``async_compile.precompile`` may hold some of it.
    """
    process = reader.process
    for name, info in json_object(reader, record, record.payload).items():
        micros = info.get("compile_time_us") if isinstance(info, dict) else None
        if isinstance(micros, int | float) and 0 <= micros < inf:
            row = {
                "pid": process.pid,
                "phase_id": next(process.phase_ids),
                "depth": 0,
                "name": f"triton: {name}",
                "duration_us": float(micros),
                "self_us": float(micros),
                "aside": True,
            }
            process.add("compile_phases", record, process.find(record), row)


def _begin(process: Process, record: Record, compile: Compile | None, event: Event) -> None:
    parent = process.phases[-1].row if process.phases else None
    row = process.head(record, compile)
    row["pid"] = process.pid
    row["phase_id"] = next(process.phase_ids)
    row["parent_id"] = parent["phase_id"] if parent else None
    row["depth"] = len(process.phases)
    row["name"] = event.name
    row["started_us"] = event.ts
    row["duration_us"] = row["self_us"] = None  # until its E comes
    row["aside"] = False
    process.rows["compile_phases"].append(row)
    # Worker threads have no compile id: what runs there is no parent of what the compile does.
    elsewhere = compile is None and parent is not None and parent["compile_key"] is not None
    if elsewhere:
        row["parent_id"], row["depth"], row["aside"] = None, 0, True
    (process.loose if elsewhere else process.phases).append(OpenPhase(row))


def _end(process: Process, event: Event, compile: Compile | None) -> None:
    """Take out the phase that an E ends, the one of its own compile first."""
    nested, aside = process.phases, process.loose
    key = compile.key if compile else None
    for same_compile in (True, False):
        depth = _matching(nested, event.name, key, same_compile)
        if depth is not None:
            phase = nested[depth]
            aside.extend(nested[depth + 1 :])
            del nested[depth:]
            parent = nested[-1] if nested else None
            break
        index = _matching(aside, event.name, key, same_compile)
        if index is not None:
            phase, parent = aside.pop(index), None
            break
    else:
        return
    duration = event.ts - phase.row["started_us"]
    if duration >= 0:
        phase.row["duration_us"] = duration
        phase.row["self_us"] = max(0.0, duration - phase.children_us)
        if parent is not None:
            parent.children_us += duration


def _matching(
    phases: list[OpenPhase], name: str, key: str | None, same_compile: bool
) -> int | None:
    """Index of the last phase of that name, and of that compile if asked."""
    for index in range(len(phases) - 1, max(-1, len(phases) - 1 - _SEARCHED), -1):
        row = phases[index].row
        if row["name"] == name and (not same_compile or row["compile_key"] == key):
            return index
    return None


def _arguments(reader: Reader, record: Record) -> dict[str, Any]:
    found = decode(reader, record, record.raw, _ARGUMENTS)
    return json_object(reader, record, found.args) if found else {}


def autotuned(
    reader: Reader, record: Record, compile: Compile | None, args: dict[str, Any], name: str
) -> None:
    """``OP_template_autotuning``: one row of ``autotune_choices`` for each choice that it names."""
    process = reader.process
    stats = args.get("autotune_choices_stats")
    if isinstance(stats, str):
        with suppress(*NOT_JSON):
            stats = msgspec.json.decode(stats)
    if not isinstance(stats, dict):
        stats = {}
    table = {
        "table_index": process.autotune_tables,
        "op": name.removesuffix(_AUTOTUNED),
        "shapes": as_text(args.get("autotune_shape")),
        "dtypes": as_text(args.get("autotune_dtypes")),
        "strides": as_text(args.get("autotune_strides")),
    }
    process.autotune_tables += 1
    for row in best_choices(stats):
        process.add("autotune_choices", record, compile, table | row)

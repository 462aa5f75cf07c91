"""The collector's event files: one JSON object a line, one file a process (docs/run-folder.md).

What the collector always writes of a kind of event may be relied on behind here: an event without
it is damage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from traceview import limits
from traceview.json_errors import NOT_JSON, in_utf8
from traceview.parse.damage import Damage
from traceview.parse.files import READ_ERRORS, damage_kind, open_raw

Event = dict[str, Any]
_NAME = re.compile(r"^events-(\d{1,12})\.jsonl(?:\.gz)?$")
_LATEST_US = 1e18


def is_count(value: object) -> TypeGuard[int]:
    """A whole number from 0 on that every table can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


_Needs = dict[str, Callable[[object], bool]]
_REGION: _Needs = {"region_id": is_count}
_NEEDED: dict[str, _Needs] = {
    "region": _REGION,
    "first_call": _REGION,
    "region_end": _REGION,
    "calls": {**_REGION, "rows": _is_list},
    "steps": {"rows": _is_list},
    "block": {
        "block_index": is_count,
        "first_step": is_count,
        "steps": lambda value: is_count(value) and value != 0,
    },
    "profile": {"stance": ("eager", "compiled").__contains__},
    "setting": {"section": _is_text, "name": _is_text},
    "source": {"file": _is_text},
    "note": {"what": _is_text},
}


class Process(msgspec.Struct):
    """One process's events by kind, in the order in which they happened."""

    pid: int
    rank: int | None = None
    events: dict[str, list[Event]] = {}
    first_us: float | None = None
    last_us: float | None = None

    def of(self, kind: str) -> list[Event]:
        """Events of one kind."""
        return self.events.get(kind, [])

    def last(self, kind: str) -> Event:
        """The last event of a kind, or an empty one."""
        events = self.of(kind)
        return events[-1] if events else {}

    def merged(self, kind: str) -> Event:
        """All events of a kind laid over each other: of every key the last value but null."""
        merged: Event = {}
        for event in self.of(kind):
            merged.update((key, value) for key, value in event.items() if value is not None)
        return merged


def read_processes(folder: Path, relative: str, damage: Damage) -> list[Process]:
    """Every process of a pass, the earliest first; ``relative`` names ``folder`` for the damage."""
    processes = []
    for path in sorted(folder.glob("events-*.jsonl*")):
        named = _NAME.match(path.name)
        if named is not None and path.is_file():
            events = _events(path, f"{relative}/{path.name}", damage)
            processes.append(_process(int(named[1]), events))
    return sorted(processes, key=lambda process: (process.first_us or 0.0, process.pid))


def read_process(path: Path, name: str, damage: Damage) -> Process:
    """The process whose event file ``path`` is; ``name`` is what damage is counted under."""
    named = _NAME.match(path.name)
    process = _process(int(named[1]) if named else 0, _events(path, name, damage))
    pid = process.merged("process").get("pid")
    if is_count(pid):
        process.pid = pid
    return process


def _process(pid: int, events: Iterable[Event]) -> Process:
    process = Process(pid)
    for event in events:
        process.events.setdefault(event["event"], []).append(event)
        at = event.get("t")
        if isinstance(at, (int, float)) and not isinstance(at, bool) and 0 <= at < _LATEST_US:
            process.first_us = float(at) if process.first_us is None else process.first_us
            process.last_us = float(at)
    rank = process.merged("process").get("rank")
    process.rank = rank if is_count(rank) else None
    return process


def _events(path: Path, name: str, damage: Damage) -> Iterator[Event]:
    """Lines that are events; any other line, a half-written last one too, is counted."""
    decode = msgspec.json.Decoder().decode
    try:
        with open_raw(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(limits.now.record), b""), 1):
                if not line.strip():
                    continue
                if number > limits.now.records:
                    damage.count(name, "too_many_records", number, f"more than {number - 1} lines")
                    return
                try:
                    limits.check_depth(line)
                    event = decode(in_utf8(line))
                except NOT_JSON:
                    kind = "bad_json" if line.endswith(b"\n") else "truncated"
                    damage.count(name, kind, number, line[:200].decode("utf-8", "replace"))
                    continue
                # It has all that the collector always writes of its kind.
                of = event.get("event") if isinstance(event, dict) else None
                needed = _NEEDED.get(of, {}).items() if isinstance(of, str) else ()
                if isinstance(of, str) and all(fits(event.get(key)) for key, fits in needed):
                    yield event
                else:
                    text = line[:200].decode("utf-8", "replace")
                    damage.count(name, "bad_event", number, text)
    except READ_ERRORS as error:
        damage.count(name, damage_kind(error), None, str(error))

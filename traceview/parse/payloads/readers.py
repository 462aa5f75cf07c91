"""Which payloads tell something by themselves that takes long to read, and who reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from traceview import limits
from traceview.json_errors import NOT_JSON
from traceview.parse.payloads import clipped
from traceview.parse.payloads.guard_tree import Guards, guards
from traceview.parse.payloads.metrics import METRICS, Event, Metrics, Numbers, event, metrics
from traceview.parse.payloads.module import Module, Traces, module, traces

Told = Event | Guards | Metrics | Module | Traces

_OBJECT = msgspec.json.Decoder(dict[str, Any])

#: By envelope key, or by the name of an artifact.
_READERS: dict[str, Callable[[bytes], Told]] = {
    "chromium_event": event,
    "inductor_output_code": lambda payload: module(clipped(payload, limit=limits.now.long_text)),
    "inductor_provenance_tracking_kernel_stack_traces": lambda payload: traces(
        _OBJECT.decode(payload)
    ),
}
#: What only a process reads that has nothing else to do: so both of a large file are busy.
_SPARE_READERS: dict[str, Callable[[bytes], Told]] = {
    "dynamo_cpp_guards_str": lambda payload: guards(clipped(payload, limit=limits.now.long_text)),
}


def told(kind: str, payload: bytes, spare: bool = False) -> Told | None:
    """What ``payload`` alone shows; None where its kind has no reader or it is damaged.

    ``spare``: there is time for what would otherwise be read where the tables are made.
    """
    read = _READERS.get(kind) or (_SPARE_READERS.get(kind) if spare else None)
    if read is None:
        return None
    try:
        limits.check_depth(payload)
        return read(payload)
    except NOT_JSON:
        return None


def told_by(envelope: bytes, key: str, numbers: Numbers) -> Told | None:
    """The same of an envelope; ``numbers`` are those of its log."""
    if key not in METRICS:
        return None
    try:
        return metrics(envelope, key, numbers)
    except NOT_JSON:
        return None

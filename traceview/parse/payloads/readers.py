"""Which payloads tell something by themselves that takes long to read, and who reads them.

As many as keep both processes of a large file busy: trees of guards tell as much, and are read
where the tables are made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from traceview.parse.payloads.event import Event, event
from traceview.parse.payloads.module import Module, module
from traceview.parse.payloads.text import clipped
from traceview.parse.payloads.traces import Traces, traces

Told = Event | Module | Traces

_OBJECT = msgspec.json.Decoder(dict[str, Any])

#: By envelope key, or by the name of an artifact.
_READERS: dict[str, Callable[[bytes], Told]] = {
    "chromium_event": event,
    "inductor_output_code": lambda payload: module(clipped(payload)),
    "inductor_provenance_tracking_kernel_stack_traces": lambda payload: traces(
        _OBJECT.decode(payload)
    ),
}


def told(kind: str, payload: bytes) -> Told | None:
    """What ``payload`` tells; None where its kind tells nothing or it is damaged."""
    read = _READERS.get(kind)
    if read is None:
        return None
    try:
        return read(payload)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None

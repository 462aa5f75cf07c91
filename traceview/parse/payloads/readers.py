"""Which payloads tell something by themselves that takes long to read, and who reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from traceview.parse.payloads.event import Event, event
from traceview.parse.payloads.graph_text import NodeLines, node_lines
from traceview.parse.payloads.guard_tree import Guards, guards
from traceview.parse.payloads.module import Module, module
from traceview.parse.payloads.text import TREE_LIMIT, clipped
from traceview.parse.payloads.traces import Traces, traces

Told = Event | Guards | Module | NodeLines | Traces

_OBJECT = msgspec.json.Decoder(dict[str, Any])

#: By envelope key, or by the name of an artifact.
_READERS: dict[str, Callable[[bytes], Told]] = {
    "chromium_event": event,
    "dynamo_output_graph": lambda payload: node_lines(clipped(payload)),
    "dynamo_cpp_guards_str": lambda payload: guards(clipped(payload, limit=TREE_LIMIT)),
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

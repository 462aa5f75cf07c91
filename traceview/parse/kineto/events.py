"""Trace events, decoded as far as the tables need them."""

from __future__ import annotations

from typing import Any

import msgspec

Number = Any  # numbers are whole or broken, or, in foreign traces, text: columns are cast later


class Args(msgspec.Struct, frozen=True, gc=False):
    """The arguments of an event that the tables need; lists stay text, as their depth varies."""

    external_id: Number = msgspec.field(name="External id", default=None)
    sequence: Number = msgspec.field(name="Sequence number", default=None)
    forward_thread: Number = msgspec.field(name="Fwd thread id", default=None)
    correlation: Number = None
    device: Number = None
    stream: Number = None
    bytes: Number = None
    grid: msgspec.Raw = msgspec.Raw()
    block: msgspec.Raw = msgspec.Raw()
    input_dims: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw())
    input_types: msgspec.Raw = msgspec.field(name="Input type", default=msgspec.Raw())
    input_strides: msgspec.Raw = msgspec.field(name="Input Strides", default=msgspec.Raw())
    concrete_inputs: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=msgspec.Raw())
    kernel_file: Number = None
    total_allocated: Number = msgspec.field(name="Total Allocated", default=None)
    allocated: Number = msgspec.field(name="Bytes", default=None)
    device_type: Number = msgspec.field(name="Device Type", default=None)
    device_id: Number = msgspec.field(name="Device Id", default=None)


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One event; ``ts`` and ``dur`` in µs with three decimals."""

    name: str = ""
    ph: str = ""
    cat: str | None = None
    pid: Any = None
    tid: Any = None
    ts: float | None = None
    dur: float | None = None
    args: Args | None = NO_ARGS


decode_events = msgspec.json.Decoder(list[Event]).decode

"""Trace events, decoded as far as the tables need them."""

from __future__ import annotations

from typing import Any

import msgspec

from traceview.parse.kineto.columns import MISSING

Number = Any  # whole, or in foreign traces broken or text: columns are cast later
NOTHING = msgspec.Raw()


class Args(msgspec.Struct, frozen=True, gc=False):
    """The arguments of an event that the tables need; lists stay text, as their depth varies.

    In the order in which torch writes them: the decoder looks for the next one first.
    """

    external_id: Number = msgspec.field(name="External id", default=MISSING)
    sequence: Number = msgspec.field(name="Sequence number", default=MISSING)
    forward_thread: Number = msgspec.field(name="Fwd thread id", default=MISSING)
    concrete_inputs: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=NOTHING)
    input_types: msgspec.Raw = msgspec.field(name="Input type", default=NOTHING)
    input_strides: msgspec.Raw = msgspec.field(name="Input Strides", default=NOTHING)
    input_dims: msgspec.Raw = msgspec.field(name="Input Dims", default=NOTHING)
    device: Number = MISSING
    stream: Number = MISSING
    correlation: Number = MISSING
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING
    bytes: Number = MISSING
    kernel_file: msgspec.Raw = NOTHING
    total_allocated: Number = msgspec.field(name="Total Allocated", default=MISSING)
    allocated: Number = msgspec.field(name="Bytes", default=MISSING)
    device_type: Number = msgspec.field(name="Device Type", default=MISSING)
    device_id: Number = msgspec.field(name="Device Id", default=MISSING)


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One event; ``ts`` and ``dur`` in µs with three decimals."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    ts: float | None = None
    dur: float | None = None
    args: Args | None = NO_ARGS


decode_events = msgspec.json.Decoder(list[Event]).decode

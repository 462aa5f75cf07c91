"""``inductor_collective_schedule``: the order of collectives in one compiled graph (torch 2.10)."""

from __future__ import annotations

from typing import Any

import msgspec

from traceview.parse.cutting import Record
from traceview.parse.structured.decode import decode
from traceview.parse.structured.state import Reader

_LIST = msgspec.json.Decoder(list[Any])


def collective_schedule(reader: Reader, record: Record) -> None:
    """``["torch.ops._c10d_functional.all_reduce.default", …]``."""
    process = reader.process
    found = decode(reader, record, record.payload, _LIST)
    if found is not None:
        row = {"pid": process.pid, "schedule": [str(item) for item in found]}
        process.add("collective_schedules", record, process.find(record), row)

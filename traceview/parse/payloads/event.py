"""``chromium_event``: ``{"name", "ph": "B" | "E" | "i", "ts", "args": {…}}``, without its args."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from traceview.parse.payloads.metrics import dynamo_row


class Event(msgspec.Struct, array_like=True, tag="event", gc=False, omit_defaults=True):
    """Name, phase and time in µs of one event; of the end of ``dynamo`` the compile's columns."""

    name: str
    ph: str
    ts: float
    row: dict[str, Any] | None = None


class _Fields(msgspec.Struct, gc=False):
    name: str
    ph: str
    ts: float


#: Of JSON; a tab in a payload is nothing to it.
FIELDS = msgspec.json.Decoder(_Fields)


def event(payload: bytes) -> Event:
    """The event that ``payload`` holds; msgspec.DecodeError where it is none."""
    found = FIELDS.decode(payload)
    if found.name == "dynamo" and found.ph == "E":
        with suppress(msgspec.DecodeError):
            return Event(found.name, found.ph, found.ts, dynamo_row(payload))
    return Event(found.name, found.ph, found.ts)

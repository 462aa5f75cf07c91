"""``chromium_event``: ``{"name", "ph": "B" | "E" | "i", "ts", "args": {…}}``, without its args."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, array_like=True, tag="event", gc=False):
    """Name, phase and time in µs of one event."""

    name: str
    ph: str
    ts: float


class _Fields(msgspec.Struct, gc=False):
    name: str
    ph: str
    ts: float


#: Of JSON; a tab in a payload is nothing to it.
FIELDS = msgspec.json.Decoder(_Fields)


def event(payload: bytes) -> Event:
    """The event that ``payload`` holds; msgspec.DecodeError where it is none."""
    found = FIELDS.decode(payload)
    return Event(found.name, found.ph, found.ts)

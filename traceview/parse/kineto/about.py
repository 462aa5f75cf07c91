"""What a trace says of itself outside of its events: whose it is, and when its clock began."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from traceview.parse.kineto.splitter import objects

_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})')
_WORLD = re.compile(rb'"distributedInfo"\s*:\s*(?=\{)')
_DEVICE = re.compile(rb'"deviceProperties"\s*:\s*\[\s*(?=\{)')
#: Older torch counts ``ts`` from 1970: no computer has run since then, none is older than 2001.
_UNIX_NS = 10**18


class About(msgspec.Struct, frozen=True):
    """Of a trace: rank, ranks of its job, name of its first device, Unix time of its ``ts`` 0."""

    rank: int | None = None
    world_size: int | None = None
    device: str | None = None
    base_ns: int | None = None

    def unix_ns(self, ts_ns: int | None) -> int | None:
        """Unix time of an event's ``ts``."""
        if ts_ns is None or (self.base_ns is None and ts_ns < _UNIX_NS):
            return None
        return ts_ns + (self.base_ns or 0)


def about(text: bytes) -> About:
    """What ``text`` says, which surrounds the list of events."""
    world, device = _object(_WORLD, text), _object(_DEVICE, text)
    base = _BASE.search(text)
    name = device.get("name")
    return About(
        _count(world.get("rank")),
        _count(world.get("world_size")),
        name if isinstance(name, str) else None,
        int(base[1]) if base else None,
    )


def _object(before: re.Pattern[bytes], text: bytes) -> dict[str, Any]:
    """The first JSON object behind ``before``; empty if there is none, or it is damaged."""
    match = before.search(text)
    if match is None:
        return {}
    try:
        found = msgspec.json.decode(next(objects(text[match.end() :]), b""))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 2**31 else None

"""Decoding with msgspec where the input may be damaged: a failure is counted, not raised."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from traceview import limits
from traceview.json_errors import NOT_JSON
from traceview.parse.cutting import Record
from traceview.parse.payloads import clipped
from traceview.parse.structured.state import Reader

_T = TypeVar("_T")
_Read = TypeVar("_Read")
_ANY = msgspec.json.Decoder()


def decode(
    reader: Reader, record: Record, raw: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[_T]
) -> _T | None:
    """``raw`` as the decoder's type, else None; ``bad_json`` and ``bad_encoding`` are counted."""
    try:
        limits.check_depth(bytes(raw))
        return decoder.decode(raw)
    except RecursionError:
        text, kind = "nested too deeply", "bad_json"
    except NOT_JSON as error:
        text = bytes(raw).decode("utf-8", "replace")
        kind = "bad_encoding" if "utf-8" in str(error).lower() else "bad_json"
    reader.unreadable(record, kind, text)
    if kind == "bad_encoding":
        with suppress(*NOT_JSON):
            return decoder.decode(text.encode())
    return None


def json_object(reader: Reader, record: Record, raw: bytes | msgspec.Raw) -> dict[str, Any]:
    """``raw`` as a JSON object; an empty one where it is none, or where there is no payload: on a
    cache hit torch writes some artifacts without one."""
    if raw == b"":
        return {}
    value = decode(reader, record, raw, _ANY)
    return value if isinstance(value, dict) else {}


def text_of(reader: Reader, record: Record, limit: int | None = None) -> str:
    """The payload as text, cut at ``limit`` with a mark; bytes that are no UTF-8 are replaced."""
    payload = record.payload
    try:
        return clipped(payload, limit=limit)
    except UnicodeDecodeError:
        text = clipped(payload, "replace", limit)
        reader.unreadable(record, "bad_encoding", text)
        return text


def told(record: Record, kind: type[_T], read: Callable[[], _Read]) -> _T | _Read:
    """What the payload alone shows, read here if the process that cut the file did not."""
    found = record.told
    return found if isinstance(found, kind) else read()


def as_text(value: object) -> str | None:
    """What a field holds, as a column of texts has it."""
    return None if value is None else str(value)

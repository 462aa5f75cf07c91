"""Events that are not valid JSON, each tried on its own and mended where its meaning is plain.

torch 2.13's C++ exporter writes the double quotes of a ``record_function`` name unescaped, older
ones raw control bytes and Windows backslashes too; a copy of length 0 has ``inf`` as its bandwidth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from traceview.parse.kineto.events import Event, decode_events
from traceview.parse.kineto.splitter import objects

_BETWEEN = re.compile(rb"\n\s*\},\s*\n\s*\{|\},\n\{")
_NOT_NUMBERS = re.compile(
    rb"(?<=[:\[,\s])(?:[-+]?(?:nan|inf(?:inity)?))(?=\s*[,}\]\n])", re.IGNORECASE
)
_NAME = re.compile(
    rb'("name"\s*:\s*")(.*?)("\s*,\s*"(?:pid|ts|ph|cat|tid|dur|args|s|id|bp)"\s*:)', re.DOTALL
)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_BACKSLASH = re.compile(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_ESCAPED_OR_QUOTE = re.compile(rb'\\.|"', re.DOTALL)


def mend(data: bytes) -> Iterator[Event | bytes]:
    """The events of a slice that did not decode; what cannot be mended comes as its bytes."""
    for text in _apart(data):
        yield _decoded(text) or _decoded(_mended(text)) or text


def _apart(data: bytes) -> Iterator[bytes]:
    if _BETWEEN.search(data) is None:
        yield from objects(data)
        return
    start = 0
    for match in _BETWEEN.finditer(data):
        comma = data.index(b",", match.start())
        yield data[start:comma]
        start = comma + 1
    yield data[start:]


def _decoded(text: bytes) -> Event | None:
    try:
        found = decode_events(b"[" + text + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found[0] if len(found) == 1 else None


def _mended(text: bytes) -> bytes:
    text = text.decode("utf-8", errors="replace").encode()
    text = _NAME.sub(_quoted, text, count=1)
    return _NOT_NUMBERS.sub(b"null", text)


def _quoted(match: re.Match[bytes]) -> bytes:
    """The name with its own quotes, control bytes and stray backslashes escaped."""
    name = _BACKSLASH.sub(rb"\\\\", match[2])
    name = _ESCAPED_OR_QUOTE.sub(lambda m: rb"\"" if m[0] == b'"' else m[0], name)
    name = _CONTROL.sub(lambda m: b"\\u%04x" % m[0][0], name)
    return match[1] + name + match[3]

"""The stream to records.

A record is a line ``V1120 20:09:53.524000 5956 torch/x.py:1328] {…}`` (``TorchLogsFormatter`` in
torch/_logging/_internal.py) with the lines after it that start with a tab: its payload, whose MD5
stands in the envelope as ``has_payload``. Everything is bytes here, and lines end at ``\\n`` alone,
since a payload may hold ``\\r``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import md5
from typing import Protocol

from traceview import limits
from traceview.json_errors import NOT_JSON
from traceview.parse.cutting.careful import Careful
from traceview.parse.cutting.shapes import (
    CONTEXT,
    CONTEXT_KEYS,
    KEYS,
    PREFIX,
    Chunk,
    Cut,
    Report,
    untab,
)

BLOCK_BYTES = 1 << 20

_ARTIFACT = re.compile(rb'\{"artifact": \{"name": "([\w.]{1,100})"')
_PLAIN = re.compile(rb"\w{1,100}")
#: What ends a record: also any number of blank lines, which would take 1 µs each.
_START = re.compile(rb"\n+(?=[^\t])")


class Readable(Protocol):
    """What a log is read from."""

    def read(self, size: int, /) -> bytes: ...


def cuts(stream: Readable, report: Report, offset: int = 0, line: int = 1) -> Iterator[Cut]:
    """The records of ``stream``; what is none is reported to ``report``.

    Memory is bounded by one record and one block; a record above ``limits.record`` is cut and
    reported.
    ``offset`` and ``line`` say where the stream begins in its file.
    """
    careful = Careful(report)
    for chunk in _chunks(stream, report, offset, line):
        cut = _proven(chunk)
        if cut is None:
            yield from careful.take(chunk)
        else:
            if careful.waits:
                yield from careful.close()
            yield cut
    yield from careful.close(final=True)


def _proven(chunk: Chunk) -> Cut | None:
    """The record that ``chunk`` is, if it starts with its prefix and its digest is right."""
    block, start, end = chunk.block, chunk.start, chunk.end
    prefix = PREFIX.match(block, start, end)
    if prefix is None:
        return None
    newline = block.find(b"\n", start, end)
    envelope = block[prefix.end() : end if newline < 0 else newline]
    try:
        context = CONTEXT.decode(envelope)
        if not envelope.isascii():
            KEYS.decode(envelope)  # it checks what the context's decoder steps over
    except NOT_JSON:
        return None
    payload, length = b"", end - start
    if context.has_payload is not None:
        tail = b"" if newline < 0 else block[newline + 1 : end]
        payload = tail.replace(b"\t", b"")  # the quick way: right where no other tab stands
        if _digest(payload) == context.has_payload:
            chunk.lines = 1 + len(tail) - len(payload)
        else:
            payload = untab(tail)
            if _digest(payload) != context.has_payload:
                return None
    elif newline >= 0:
        length = 0
    # torch writes the kind first
    key = _kind(envelope[2 : envelope.find(b'"', 2)]) if envelope.startswith(b'{"') else None
    if key is None:
        return None
    named = _ARTIFACT.match(envelope) if key == "artifact" else None
    return Cut(
        chunk.line,
        int(prefix["pid"]),
        key,
        context,
        len(payload),
        prefix["stamp"],
        name=named[1].decode() if named else None,
        head=(prefix[0], envelope),
        raw=payload,
        offset=chunk.offset,
        length=length,
    )


@lru_cache(maxsize=1_000)
def _kind(key: bytes) -> str | None:
    """The first key of an envelope, where it is a plain one."""
    name = key.decode() if _PLAIN.fullmatch(key) else ""
    return name if name and name not in CONTEXT_KEYS else None


def _chunks(stream: Readable, report: Report, offset: int, line: int) -> Iterator[Chunk]:
    """Lines with the tab lines after them; the rest of one that is too long is left out."""
    rest = b""
    skipping = False
    blocks = iter(lambda: stream.read(BLOCK_BYTES), b"")  # reads no more once it has ended
    while (longer := _longer(rest, blocks)) is not None:
        data, seen = longer
        start = 0
        for match in _START.finditer(data, seen):
            end, begins = match.span()
            chunk = Chunk(line, offset + start, data, start, end, True)
            if not skipping:
                yield chunk
            line += (
                chunk.lines + begins - end - 1 if chunk.lines else data.count(b"\n", start, begins)
            )
            skipping = False
            start = begins
        offset += start
        rest = data[start:]
        if len(rest) > limits.now.record:
            if not skipping:
                report("too_long", line, rest[:400].decode("utf-8", "replace"))
                yield Chunk(line, offset, rest, 0, len(rest), False)
            skipping = True
            line += rest.count(b"\n")
            offset += len(rest) - 1
            rest = b"\t"
    if rest and not skipping:
        ended = rest.endswith(b"\n")
        yield Chunk(line, offset, rest, 0, len(rest) - ended, ended)


def _longer(rest: bytes, blocks: Iterator[bytes]) -> tuple[bytes, int] | None:
    """``rest`` and what follows, until a line starts in it or it is too long: joined only once.

    With it where to look for the first such line; None at the end.
    """
    held, size = [rest], len(rest)
    for block in blocks:
        between = held[-1].endswith(b"\n") and block[:1] != b"\t"
        first = None if between else _START.search(block)
        held.append(block)
        seen = size - 1 if between else size + (first.start() if first else len(block) - 1)
        size += len(block)
        if between or first or size > limits.now.record:
            break
    return (b"".join(held), max(0, seen)) if len(held) > 1 else None


def _digest(payload: bytes) -> str:
    return md5(payload, usedforsecurity=False).hexdigest()

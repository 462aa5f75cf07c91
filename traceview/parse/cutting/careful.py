"""Records that are not proved by themselves: mixed with foreign lines, damaged or prefixed.

A line of another program inside a payload is stepped over where the digest proves what belongs
together. The prefix is searched for, not anchored: launchers put ``[rank0]: `` in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import md5

import msgspec

from traceview.json_errors import NOT_JSON
from traceview.parse.cutting.shapes import (
    CONTEXT,
    CONTEXT_KEYS,
    KEYS,
    PREFIX,
    Chunk,
    Context,
    Cut,
    Report,
    untab,
)

_PREFIX_BYTES = 4096
_RANK = re.compile(rb"\[rank(\d{1,6})\]")


class _Open(msgspec.Struct):
    """A record whose payload may go on behind a foreign line."""

    line: int
    prefix: re.Match[bytes]
    head: bytes
    parts: list[bytes]


class Careful:
    """Takes chunks one after the other and gives the records that they are parts of."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._open: _Open | None = None
        self._last_line = 1
        self._ended = True

    @property
    def waits(self) -> bool:
        """Whether a record may go on."""
        return self._open is not None

    def take(self, chunk: Chunk) -> Iterator[Cut]:
        """The next chunk that is no proven record; gives the record before it, if it begins one."""
        self._last_line, self._ended = chunk.line, chunk.ended
        head, _, tail = chunk.block[chunk.start : chunk.end].partition(b"\n")
        if head.startswith(b"\0") and head.strip(b"\0"):  # a page that was never written
            self._report("foreign_line", chunk.line, _text(head))
            head = head.lstrip(b"\0")
        prefix = PREFIX.match(head) or PREFIX.search(head, 0, _PREFIX_BYTES)
        if prefix is not None:
            yield from self.close()
            self._open = _Open(chunk.line, prefix, head, [tail])
            return
        if head.strip():
            self._report("foreign_line", chunk.line, _text(head))
        if tail and self._open is not None:
            self._open.parts.append(tail)

    def close(self, *, final: bool = False) -> Iterator[Cut]:
        """The open record, if there is one; ``final`` at the end of the stream."""
        found, self._open = self._open, None
        if found is None:
            return
        cut = final and (not self._ended or found.line == self._last_line)
        envelope = self._envelope(found, cut)
        if envelope is None:
            return
        head, kind, context = envelope
        before = found.prefix.start()
        if context.rank is None and (named := _RANK.search(found.head, 0, before)):
            context.rank = int(named[1])
        payload, whole = self._payload(found, context.has_payload)
        if not whole:
            self._report("truncated" if cut else "bad_digest", found.line, _text(found.head))
        yield Cut(
            found.line,
            int(found.prefix["pid"]),
            kind,
            context,
            len(payload),
            found.prefix["stamp"],
            whole=whole,
            head=(found.prefix[0], head),
            raw=payload,
        )

    def _payload(self, found: _Open, digest: str | None) -> tuple[bytes, bool]:
        """The payload without its tabs, and whether its digest is right (True where there is none).

        The parts behind foreign lines count only if the digest is right with them. Where the digest
        is right before the end, the lines after it lost their envelope.
        """
        if digest is None:
            return b"", True
        lines = found.parts[0]
        first = untab(lines)
        candidates = [first]
        if b"\r" in first:
            candidates.append(first.replace(b"\r\n", b"\n").removesuffix(b"\r"))
        if len(found.parts) > 1:
            candidates.append(untab(b"\n".join(part for part in found.parts if part)))
        for candidate in candidates:
            if md5(candidate, usedforsecurity=False).hexdigest() == digest:
                return candidate, True
        so_far, start = md5(usedforsecurity=False), 0
        while (end := lines.find(b"\n", start)) >= 0:
            so_far.update(b"\n" * (start > 0) + lines[start + 1 : end])
            if so_far.hexdigest() == digest:
                payload = untab(lines[:end])
                after = found.line + 2 + payload.count(b"\n")
                self._report("foreign_line", after, _text(lines[end + 1 :]))
                return payload, True
            start = end + 1
        return first, False

    def _envelope(self, found: _Open, cut: bool) -> tuple[bytes, str, Context] | None:
        """The envelope, made UTF-8 if need be, its kind and context; None where it has none."""
        head = found.head[found.prefix.end() :]
        for text in (head, head.decode("utf-8", "replace").encode()):
            try:
                context, keys = CONTEXT.decode(text), KEYS.decode(text)
            except NOT_JSON:
                continue
            if text != head:
                self._report("bad_encoding", found.line, _text(head))
            kind = next((key for key in keys if key not in CONTEXT_KEYS), None)
            if kind is not None:
                return text, kind, context
            self._report("bad_json", found.line, _text(found.head))
            return None
        self._report("truncated" if cut else "bad_json", found.line, _text(found.head))
        return None


def _text(raw: bytes) -> str:
    return raw[:400].decode("utf-8", "replace")

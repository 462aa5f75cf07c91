"""Cut a TORCH_TRACE file into records, as bytes, in one pass.

A record is a line ``V1120 20:09:53.524000 5956 torch/x.py:1328] {…}`` (torch/_logging/_internal.py,
``TorchLogsFormatter``) with the lines after it that start with a tab: its payload, whose MD5 stands
in the envelope as ``has_payload``. The prefix is searched for, not anchored: launchers put
``[rank0]: `` in front. The stamp has neither year nor zone.

Everything is bytes here. Lines end at ``\\n`` alone, since a payload may hold ``\\r``. A line of
another program inside a payload is stepped over where the digest proves what belongs together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from typing import Protocol

import msgspec

from traceview.parse.damage import Damage

BLOCK_BYTES = 1 << 22
MAX_RECORD_BYTES = 1 << 26
_PREFIX_BYTES = 4096

_PREFIX = re.compile(
    rb"[VIWEC](?P<month>\d\d)(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    rb"\.(?P<micro>\d{6}) +(?P<pid>\d{1,18}) +(?:[A-Za-z]:)?[^:\n]{1,1024}:\d+\] ?(?=\{)"
)
_RANK = re.compile(rb"\[rank(\d{1,6})\]")
_START = re.compile(rb"\n(?=[^\t])")
_CONTEXT = frozenset(
    ("rank", "frame_id", "frame_compile_id", "attempt", "compiled_autograd_id", "has_payload",
     "stack", "subgraph_name")
)  # fmt: skip

Stamp = tuple[int, int, int, int, int, int]
_ENVELOPE = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Readable(Protocol):
    """What a log is read from."""

    def read(self, size: int, /) -> bytes: ...


class Context(msgspec.Struct):
    """The context keys of an envelope; has_payload is the MD5 of the payload in hex."""

    rank: int | None = None
    frame_id: int | None = None
    frame_compile_id: int | None = None
    attempt: int | None = None
    compiled_autograd_id: int | None = None
    has_payload: str | None = None


_CONTEXT_DECODER = msgspec.json.Decoder(Context)


@dataclass(slots=True)
class Record:
    """One record: where it stands, its envelope's kind and undecoded value, its payload's bytes.

    ``whole`` says that the payload has the right digest; ``name`` is an artifact's name.
    """

    line: int
    prefix: re.Match[bytes]
    pid: int
    context: Context
    key: str
    body: msgspec.Raw
    payload: bytes
    whole: bool
    name: str | None = None

    @property
    def stamp(self) -> Stamp:
        """Month, day, hour, minute, second and microsecond, local time."""
        month, day, hour, minute, second, micro = self.prefix.groups()[:6]
        return int(month), int(day), int(hour), int(minute), int(second), int(micro)


@dataclass(slots=True)
class _Open:
    """A record whose payload may go on behind a foreign line."""

    line: int
    prefix: re.Match[bytes]
    head: bytes
    parts: list[bytes]


def iter_records(stream: Readable, file: str, damage: Damage) -> Iterator[Record]:
    """The records of ``stream``; what is none is counted in ``damage`` under ``file``.

    Memory is bounded by one record and one block; a record above 64 MiB is cut and counted.
    """
    current: _Open | None = None
    last_line = 1
    ended = True
    for line, chunk, whole_line in _chunks(stream, file, damage):
        last_line, ended = line, whole_line
        head, _, tail = chunk.partition(b"\n")
        prefix = _PREFIX.match(head) or _PREFIX.search(head, 0, _PREFIX_BYTES)
        if prefix is not None:
            if current is not None:
                yield from _close(current, file, damage, final=False)
            current = _Open(line, prefix, head, [tail])
        elif head.strip():
            damage.count(file, "foreign_line", line, _text(head))
            if current is not None and tail:
                current.parts.append(tail)
        elif tail and current is not None:
            current.parts.append(tail)
    if current is not None:
        cut = not ended or current.line == last_line
        yield from _close(current, file, damage, final=cut)


def _chunks(stream: Readable, file: str, damage: Damage) -> Iterator[tuple[int, bytes, bool]]:
    """(1-based line, a line with the tab lines after it, whether a newline ended it)."""
    rest = b""
    line = 1
    skipping = False
    while block := stream.read(BLOCK_BYTES):
        data = rest + block
        start = 0
        for match in _START.finditer(data):
            end = match.start()
            if not skipping:
                yield line, data[start:end], True
            skipping = False
            line += data.count(b"\n", start, end + 1)
            start = end + 1
        rest = data[start:]
        if len(rest) > MAX_RECORD_BYTES:
            if not skipping:
                damage.count(file, "too_long", line, _text(rest[:400]))
                yield line, rest, False
            skipping = True
            line += rest.count(b"\n")
            rest = b"\t"
    if rest and not skipping:
        ended = rest.endswith(b"\n")
        yield line, rest[:-1] if ended else rest, ended


def _close(current: _Open, file: str, damage: Damage, *, final: bool) -> Iterator[Record]:
    """Decode the envelope and join the payload; nothing where the envelope is no JSON object."""
    head = current.head[current.prefix.end() :]
    try:
        fields, context = _ENVELOPE.decode(head), _CONTEXT_DECODER.decode(head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            repaired = head.decode("utf-8", "replace").encode()
            fields, context = _ENVELOPE.decode(repaired), _CONTEXT_DECODER.decode(repaired)
            damage.count(file, "bad_encoding", current.line, _text(head))
        except (msgspec.DecodeError, RecursionError):
            kind = "truncated" if final else "bad_json"
            damage.count(file, kind, current.line, _text(current.head))
            return
    key = next((name for name in fields if name not in _CONTEXT), None)
    if key is None:
        damage.count(file, "bad_json", current.line, _text(current.head))
        return
    if context.rank is None and (named := _RANK.search(current.head, 0, current.prefix.start())):
        context.rank = int(named[1])
    payload, whole = _payload(current.parts, context.has_payload)
    if not whole:
        kind = "truncated" if final else "bad_digest"
        damage.count(file, kind, current.line, _text(current.head))
    prefix = current.prefix
    yield Record(
        current.line, prefix, int(prefix["pid"]), context, key, fields[key], payload, whole
    )


def _payload(parts: list[bytes], digest: str | None) -> tuple[bytes, bool]:
    """The payload without its tabs, and whether its digest is right (True where there is none).

    The parts behind foreign lines count only if the digest is right with them.
    """
    if digest is None:
        return b"", True
    first = _untab(parts[0])
    if _digest(first) == digest:
        return first, True
    candidates = [first.replace(b"\r\n", b"\n").removesuffix(b"\r")] if b"\r" in first else []
    if len(parts) > 1:
        candidates.append(_untab(b"\n".join(part for part in parts if part)))
    for candidate in candidates:
        if _digest(candidate) == digest:
            return candidate, True
    return first, False


def _untab(lines: bytes) -> bytes:
    return lines[1:].replace(b"\n\t", b"\n")


def _digest(payload: bytes) -> str:
    return md5(payload, usedforsecurity=False).hexdigest()


def _text(raw: bytes) -> str:
    return raw[:400].decode("utf-8", "replace")

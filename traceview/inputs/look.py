"""What a file is, by its first bytes. A name decides only where the content says nothing."""

from __future__ import annotations

import io
import re
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Literal

import msgspec

from traceview.inputs.archives import Archive, archive_of
from traceview.inputs.packing import Packing, packing_of, unpacked
from traceview.inputs.prefixes import STAMP, Style, stripped, style_of
from traceview.inputs.streams import DamagedInput

Kind = Literal[
    "structured",
    "textlog",
    "stderr",
    "kineto",
    "chromium",
    "events",
    "manifest",
    "empty",
    "unknown",
]
#: What of a file is looked at.
HEAD_BYTES = 1 << 18

_STRUCTURED = re.compile(STAMP + rb' ?\{\s*"')
_TEXTLOG = re.compile(STAMP)
_FOREIGN = re.compile(rb"^(?!\s)(?!(?:\[rank\d{1,6}\]:)?" + STAMP + rb").", re.MULTILINE)
_EVENTS = re.compile(rb'^\{"event": ?"\w+", ?"t": ?\d', re.MULTILINE)
_MANIFEST = re.compile(rb'\s*\{\s*"format": ?\d+,\s*"traceview":')
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*[\[{]")
_TRACE = re.compile(rb'"traceEvents"\s*:')
_PHASE = re.compile(rb'"ph"\s*:\s*"\w"')
_COMPILER = re.compile(rb'"cat"\s*:\s*"dynamo_tim')
_STDERR = re.compile(
    rb"^AUTOTUNE \w+\(|^Traceback \(most recent call last\):|\.py:\d+: \w*Warning: ", re.MULTILINE
)
_LOG_SUFFIXES = frozenset((".log", ".err", ".out", ".stderr", ".stdout"))
_BINARY_BYTES = 4096


def kind_of(head: bytes, name: str) -> Kind:
    """The kind of a log that begins with ``head``, unpacked and without line prefixes.

    What torch's loggers wrote is ``textlog`` where nothing else stands between, else ``stderr``.
    """
    if not head:
        return "empty"
    if _MANIFEST.match(head):
        return "manifest"
    if _STRUCTURED.search(head):
        return "structured"
    if _JSON.match(head):
        if _EVENTS.search(head):
            return "events"
        if _TRACE.search(head) or _PHASE.search(head):
            return "chromium" if _COMPILER.search(head) else "kineto"
    if _TEXTLOG.search(head):
        return "stderr" if _FOREIGN.search(head) else "textlog"
    if b"\0" in head[:_BINARY_BYTES]:
        return "unknown"
    is_log = PurePath(name).suffix.lower() in _LOG_SUFFIXES
    return "stderr" if is_log or _STDERR.search(head) else "unknown"


_UNPACKED_BYTES = 1 << 20
#: Text that begins with nothing of torch's is looked at in more places: how many, how long each.
_PLACES, _PLACE_BYTES = 32, 1 << 16
_UNSURE = ("unknown", "stderr")


class Look(msgspec.Struct, frozen=True):
    """What a file is; ``beginning`` differs between files that begin differently."""

    kind: Kind
    packed: Packing = ""
    prefix: Style = ""
    archive: Archive = ""
    beginning: str = ""


def look(head: bytes, name: str) -> Look:
    """What begins with ``head``: at most ``HEAD_BYTES`` of a file as it lies."""
    packed = packing_of(head)
    text = b"" if packed else head
    if packed:
        stream = unpacked(io.BytesIO(head), packed)
        with suppress(DamagedInput):  # the head of a packed file is a cut one
            while len(text) < _UNPACKED_BYTES and (piece := stream.read(_UNPACKED_BYTES)):
                text += piece
    if head and not text:
        raise DamagedInput("truncated", "nothing of it can be unpacked")
    if archive := archive_of(text):
        return Look("unknown", packed, archive=archive)
    style = style_of(text)
    inner = (name.rpartition(".")[0] or name) if packed else name  # without what packing added
    kind = kind_of(stripped(text, style), inner)
    beginning = blake2b(text[:_PLACE_BYTES], digest_size=16).hexdigest()
    return Look(kind, packed, style, beginning=beginning)


def look_at(path: Path, name: str) -> Look:
    """The same of a local file, where text without a torch line is looked at in more places."""
    with path.open("rb") as file:
        seen = look(file.read(HEAD_BYTES), name)
        if seen.kind not in _UNSURE or seen.packed or seen.archive:
            return seen
        size = file.seek(0, io.SEEK_END)
        for place in range(1, _PLACES + 1) if size > HEAD_BYTES else ():
            file.seek(max(0, (size - _PLACE_BYTES) * place // _PLACES))
            _, _, lines = file.read(_PLACE_BYTES).partition(b"\n")
            other = look(lines, name)
            if other.kind in ("structured", "textlog", "stderr"):
                kind: Kind = "structured" if other.kind == "structured" else "stderr"
                return Look(kind, "", other.prefix, beginning=seen.beginning)
    return seen

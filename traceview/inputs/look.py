"""What a file is, from its first bytes as they lie."""

from __future__ import annotations

import io
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from traceview.inputs.archives import Archive, archive_of
from traceview.inputs.kinds import HEAD_BYTES, Kind, kind_of
from traceview.inputs.packing import Packing, packing_of, unpacked
from traceview.inputs.prefixes import Style, stripped, style_of
from traceview.inputs.streams import DamagedInput

_UNPACKED_BYTES = 1 << 20
#: Where else text is looked at that begins with nothing of torch's: so many places, each so long.
_PLACES, _PLACE_BYTES = 32, 1 << 16
_UNSURE = ("unknown", "stderr")


class Look(msgspec.Struct, frozen=True):
    """What a file is; ``beginning`` tells apart files that begin differently."""

    kind: Kind
    packed: Packing = ""
    prefix: Style = ""
    archive: Archive = ""
    beginning: str = ""


def look(head: bytes, name: str) -> Look:
    """What begins with ``head``: at most ``HEAD_BYTES`` of a file as it lies."""
    packed = packing_of(head)
    text = _unpacked(head, packed)
    if head and not text:
        raise DamagedInput("truncated", "nothing of it can be unpacked")
    if archive := archive_of(text):
        return Look("unknown", packed, archive=archive)
    style = style_of(text)
    kind = kind_of(stripped(text, style) if style else text, _inner(name) if packed else name)
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


def _unpacked(head: bytes, packed: Packing) -> bytes:
    if not packed:
        return head
    text = b""
    stream = unpacked(io.BytesIO(head), packed)
    with suppress(DamagedInput):  # the head of a packed file is a cut one
        while len(text) < _UNPACKED_BYTES and (piece := stream.read(_UNPACKED_BYTES)):
            text += piece
    return text


def _inner(name: str) -> str:
    """The name without what the packing added."""
    return name.rpartition(".")[0] or name

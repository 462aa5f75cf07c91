"""Archives and standard input: looked into as they pass, their logs copied to a scratch folder."""

from __future__ import annotations

from pathlib import Path

import msgspec

from traceview.inputs.ahead import Ahead
from traceview.inputs.archives import INSIDE, Archive, members
from traceview.inputs.found import NO_LOG, Found
from traceview.inputs.kinds import HEAD_BYTES
from traceview.inputs.look import look
from traceview.inputs.packing import ALWAYS_BYTES, MOST_TIMES, unpacked
from traceview.inputs.source import Source
from traceview.inputs.streams import READ_ERRORS, DamagedInput, Layer, Stream

#: An archive, and archives in it.
DEEPEST = 2
TOO_DEEP = "it is an archive in an archive in an archive"


class Counted(Layer):
    """A stream that knows how many bytes it gave, and how many were copied of what it held."""

    def __init__(self, below: Stream) -> None:
        super().__init__(below)
        self.given = self.copied = 0

    def more(self, size: int) -> bytes:
        data = self.below.read(size)
        self.given += len(data)
        return data

    def copy(self, size: int) -> None:
        """``size`` bytes more are copied; DamagedInput if that is more than can be meant."""
        self.copied += size
        if self.copied > ALWAYS_BYTES and self.copied > self.given * MOST_TIMES:
            raise DamagedInput("unpacks_too_far", f"more than {MOST_TIMES} times what it is packed")


class _Place(msgspec.Struct, frozen=True):
    """Where a stream stands: its name, the file that is opened to get there, the member in it."""

    name: str
    url: str
    stamp: str | None
    outer: Counted
    member: str | None = None
    depth: int = 0

    def inside(self, member: str) -> _Place:
        path = member if self.member is None else f"{self.member}{INSIDE}{member}"
        name = f"{self.name}{INSIDE}{member}"
        return _Place(name, self.url, self.stamp, self.outer, path, self.depth + 1)


class Unpacking:
    """Copies of what passes get names of their own, never one that an archive holds."""

    def __init__(self, found: Found, scratch: Path | None) -> None:
        self._found = found
        self._scratch = scratch
        self._copies = 0

    def archive(self, name: str, url: str, stamp: str | None, stream: Stream) -> None:
        """The members of an archive that can be opened again."""
        place = _Place(name, url, stamp, Counted(stream))
        self._take(place, Ahead(place.outer))

    def once(self, name: str, stream: Stream) -> None:
        """A stream that can be read only now."""
        if self._scratch is None:
            self._found.skip(name, "there is no folder to keep it in")
            return
        place = _Place(name, name, None, Counted(stream))
        self._take(place, Ahead(place.outer))

    def _take(self, place: _Place, stream: Ahead) -> None:
        """One file or archive; what can't be read of it is noted, and the next one comes."""
        try:
            head = stream.peek(HEAD_BYTES) or stream.read(1)  # raises what hides the first byte
            seen = look(head, place.name)
            if seen.archive and place.depth < DEEPEST:
                self._members(place, unpacked(stream, seen.packed), seen.archive)
            elif seen.archive or seen.kind == "unknown":
                self._found.skip(place.name, TOO_DEEP if seen.archive else NO_LOG)
            else:
                copy, size = self._copy(place, stream)
                source = Source(
                    place.name, place.url, seen.kind, size, place.member,
                    packed=seen.packed, prefix=seen.prefix, copy=copy, stamp=place.stamp,
                )  # fmt: skip
                self._found.add(source, seen.beginning)
        except READ_ERRORS as error:
            self._found.failed(place.name, error)

    def _members(self, place: _Place, stream: Stream, archive: Archive) -> None:
        for member, inner in members(stream, archive):
            self._take(place.inside(_printable(member)), Ahead(inner))

    def _copy(self, place: _Place, stream: Stream) -> tuple[str | None, int | None]:
        """(the copy, its size); a stream that is cut leaves a copy of what there is."""
        if self._scratch is None:
            return None, None
        self._copies += 1
        path = self._scratch / f"{self._copies:06}"
        size = 0
        with path.open("wb") as file:
            try:
                while data := stream.read(Layer.BLOCK):
                    size += len(data)
                    place.outer.copy(len(data))
                    file.write(data)
            except READ_ERRORS as error:
                self._found.failed(place.name, error)
        return str(path), size


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)

"""Members of .tar.* and .zip archives, in the order in which they lie, each read as it passes.

Nothing is written to a path that an archive names: names are only shown. Archives are read from the
front, so standard input and remote ones work too, and a cut archive gives all that lies before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from traceview.inputs.ahead import Ahead
from traceview.inputs.packing import packing_of, unpacked
from traceview.inputs.streams import DamagedInput, Layer, Stream
from traceview.inputs.tar import is_tar, tar_members
from traceview.inputs.zip import is_zip, zip_members

Archive = Literal["", "tar", "zip"]
#: What stands between an archive's name and a member's.
INSIDE = "!/"
MOST_MEMBERS = 100_000


def archive_of(head: bytes) -> Archive:
    """What kind of archive begins with ``head`` (unpacked); "" for none."""
    return "tar" if is_tar(head) else "zip" if is_zip(head) else ""


def members(stream: Stream, archive: Archive) -> Iterator[tuple[str, Stream]]:
    """(name, bytes) of each file; a stream ends when the next one is asked for.

    READ_ERRORS come after the last member that can be read; a name that repeats gets a number.
    """
    seen = Counter[str]()
    below = Ahead(stream)
    for name, member in tar_members(below) if archive == "tar" else zip_members(below):
        seen[name] += 1
        if seen.total() > MOST_MEMBERS:
            raise DamagedInput("too_many_members", f"more than {MOST_MEMBERS} files")
        yield (name if seen[name] == 1 else f"{name} ({seen[name]})"), member


def open_member(stream: Stream, member: str) -> Stream:
    """The bytes of the member that ``members`` gave that name; one inside another behind "!/"."""
    below = Ahead(stream)
    opened = Ahead(unpacked(below, packing_of(below.peek(8))))
    found = members(opened, archive_of(opened.peek(1024)))
    for name, inner in found:
        if name == member:
            return Member(inner, stream)
        if member.startswith(name + INSIDE):
            return open_member(inner, member[len(name) + len(INSIDE) :])
    raise FileNotFoundError(2, "the archive holds no such file any more", member)


class Member(Layer):
    """A member whose archive is closed with it."""

    def __init__(self, below: Stream, archive: Stream) -> None:
        super().__init__(below)
        self._archive = archive

    def more(self, size: int) -> bytes:
        return self.below.read(size)

    def close(self) -> None:
        self._archive.close()
        super().close()

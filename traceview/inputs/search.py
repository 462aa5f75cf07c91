"""Arguments of the command line to sources: files, folders, patterns, archives, URLs, stdin.

Archives and standard input are looked into as they pass, their logs copied to a scratch folder.
"""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from traceview import limits
from traceview.inputs import remote
from traceview.inputs.archives import INSIDE, members
from traceview.inputs.found import NO_LOG, Found, as_text, settled
from traceview.inputs.look import HEAD_BYTES, Look, look, look_at
from traceview.inputs.packing import too_far, unpacked
from traceview.inputs.source import Source
from traceview.inputs.streams import READ_ERRORS, Ahead, Counted, DamagedInput, Layer, Stream

STDIN = "-"


def find(
    arguments: Sequence[str], scratch: Path | None = None, stdin: BinaryIO | None = None
) -> Found:
    """The sources that ``arguments`` name.

    ``scratch`` is a folder for copies of what lies in archives or comes from standard input; who
    made it removes it after reading. Without one, standard input is skipped and members of archives
    are found again whenever they are opened.
    """
    found = Found()
    search = _Search(found, scratch, several=len(arguments) > 1)
    for argument in arguments:
        if argument == STDIN:
            search.stream("stdin", cast(Stream, stdin or sys.stdin.buffer))
        elif remote.is_url(argument) and not os.path.lexists(argument):
            search.url(argument)
        else:
            search.argument(argument)
    return settled(found)


class _Search:
    """Files that were seen are not taken again, however they are reached."""

    def __init__(self, found: Found, scratch: Path | None, *, several: bool) -> None:
        self._found = found
        self._several = several
        self._scratch = scratch
        self._unpacking = Unpacking(found, scratch)
        self._seen: set[tuple[int, int]] = set()
        self._files = 0
        if scratch is not None:
            self._is_new(scratch.stat())

    def argument(self, argument: str) -> None:
        """A path, or the paths that a pattern finds."""
        paths = [argument]
        if not os.path.lexists(argument):  # a pattern, absolute perhaps
            paths = sorted(glob.glob(argument, recursive=True))  # noqa: PTH207
        if not paths:
            self._found.skip(argument, "there is no such file")
        for text in paths:
            path = Path(text)
            several = self._several or len(paths) > 1
            if path.is_dir():
                self._folder(path, text if several else "")
            else:
                self._file(path, text if several else path.name)

    def url(self, argument: str) -> None:
        """A URL of a file, of a folder, or with a pattern."""
        try:
            for file in remote.files(argument):
                name = f"{argument.rstrip('/')}/{file.name}" if self._several else file.name
                with remote.open_url(file.url) as stream:
                    head = b""
                    while len(head) < HEAD_BYTES and (piece := stream.read(HEAD_BYTES - len(head))):
                        head += piece
                self._take(look(head, name), name, file.url, file.size, file.stamp)
        except READ_ERRORS as error:
            self._found.failed(argument, error)

    def stream(self, name: str, stream: Stream) -> None:
        """What can be read only once."""
        if self._scratch is None:
            self._found.skip(name, "there is no folder to keep it in")
        else:
            self._unpacking.passing(name, name, None, stream)

    def _folder(self, folder: Path, prefix: str) -> None:
        def unreadable(error: OSError) -> None:
            self._found.failed(_shown(prefix, error.filename, folder), error)

        for parent, folders, files in os.walk(folder, onerror=unreadable, followlinks=True):
            try:
                if not self._is_new(Path(parent).stat()):
                    folders.clear()
                    continue
            except OSError as error:
                unreadable(error)
            folders.sort()
            for name in sorted(files):
                self._files += 1
                if self._files > limits.now.files:
                    what = f"more than {limits.now.files} files"
                    self._found.failed(as_text(prefix or "."), DamagedInput("too_many_files", what))
                    return
                path = Path(parent, name)
                self._file(path, _shown(prefix, path, folder))

    def _is_new(self, status: os.stat_result) -> bool:
        key = (status.st_dev, status.st_ino)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _file(self, path: Path, name: str) -> None:
        name = as_text(name)
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                self._found.skip(name, "it is no file")
            elif self._is_new(status):
                stamp = f"{status.st_size}-{status.st_mtime_ns}"
                url = f"./{path}" if remote.is_url(str(path)) else str(path)
                self._take(look_at(path, name), name, url, status.st_size, stamp)
        except READ_ERRORS as error:
            self._found.failed(name, error)

    def _take(self, seen: Look, name: str, url: str, size: int | None, stamp: str) -> None:
        if seen.archive:
            with remote.open_url(url) as stream:
                self._unpacking.passing(name, url, stamp, stream)
        else:
            source = Source(
                name, url, seen.kind, size, packed=seen.packed, prefix=seen.prefix, stamp=stamp
            )
            self._found.add(source, seen.beginning)


def _shown(prefix: str, path: str | Path, folder: Path) -> str:
    return Path(prefix, os.path.relpath(path, folder)).as_posix()


TOO_DEEP = "it is an archive in an archive in an archive"


class _Copied(Counted):
    """A stream that knows how many bytes it gave, and how many were copied of what it held."""

    copied = 0

    def copy(self, size: int) -> None:
        """``size`` bytes more are copied; DamagedInput if that is more than can be meant."""
        self.copied += size
        if (error := too_far(self.copied, self.given)) is not None:
            raise error


class _Place(msgspec.Struct, frozen=True):
    """Where a stream stands: its name, the file that is opened to get there, the member in it."""

    name: str
    url: str
    stamp: str | None
    outer: _Copied
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
        self._copies = self._bytes = 0

    def passing(self, name: str, url: str, stamp: str | None, stream: Stream) -> None:
        """The members of an archive, or a log, which lie at ``url`` or come from standard input."""
        place = _Place(name, url, stamp, _Copied(stream))
        self._take(place, Ahead(place.outer))

    def _take(self, place: _Place, stream: Ahead) -> None:
        """One file or archive; what can't be read of it is noted, and the next one comes."""
        try:
            head = stream.peek(HEAD_BYTES) or stream.read(1)  # raises what hides the first byte
            seen = look(head, place.name)
            if seen.archive and place.depth < limits.now.archives:
                for member, inner in members(unpacked(stream, seen.packed), seen.archive):
                    shown = (c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in member)
                    self._take(place.inside("".join(shown)), Ahead(inner))
            elif seen.archive or seen.kind == "unknown":
                self._found.skip(place.name, TOO_DEEP if seen.archive else NO_LOG)
            else:
                copy, size = self._copy(place, stream)
                source = Source(
                    place.name,
                    place.url,
                    seen.kind,
                    size,
                    place.member,
                    packed=seen.packed,
                    prefix=seen.prefix,
                    copy=copy,
                    stamp=place.stamp,
                )
                self._found.add(source, seen.beginning)
        except READ_ERRORS as error:
            self._found.failed(place.name, error)

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
                    self._bytes += len(data)
                    if self._bytes > limits.now.unpacked:
                        what = f"more than {limits.now.unpacked} bytes are unpacked in all"
                        raise DamagedInput("too_much_unpacked", what)
                    place.outer.copy(len(data))
                    file.write(data)
            except READ_ERRORS as error:
                self._found.failed(place.name, error)
        return str(path), size

"""Arguments of the command line to sources: files, folders, patterns, archives, URLs, stdin."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

from traceview.inputs import layout, remote
from traceview.inputs.found import Found
from traceview.inputs.kinds import HEAD_BYTES
from traceview.inputs.look import Look, look, look_at
from traceview.inputs.source import Source
from traceview.inputs.streams import READ_ERRORS, Stream
from traceview.inputs.unpacking import Unpacking

STDIN = "-"


def find(
    arguments: Sequence[str], scratch: Path | None = None, stdin: BinaryIO | None = None
) -> Found:
    """The sources that ``arguments`` name.

    ``scratch`` is a folder for copies of what lies in archives or comes from standard input; who
    made it removes it after reading. Without one, standard input is skipped and members of archives
    are found anew whenever they are opened.
    """
    found = Found()
    search = _Search(found, scratch, several=len(arguments) > 1)
    for argument in arguments:
        if argument == STDIN:
            search.stream("stdin", cast(Stream, stdin or sys.stdin.buffer))
        elif remote.is_url(argument):
            search.url(argument)
        else:
            search.argument(argument)
    return layout.settled(found)


class _Search:
    """Files that were seen are not taken again, however they are reached."""

    def __init__(self, found: Found, scratch: Path | None, *, several: bool) -> None:
        self._found = found
        self._several = several
        self._unpacking = Unpacking(found, scratch)
        self._seen: set[tuple[int, int]] = set()
        if scratch is not None:
            self._is_new(scratch.stat())

    def argument(self, argument: str) -> None:
        """A path, or the paths that a pattern finds."""
        paths = [argument] if os.path.lexists(argument) else _matching(argument)
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
                self._remote(name, file)
        except READ_ERRORS as error:
            self._found.failed(argument, error)

    def stream(self, name: str, stream: Stream) -> None:
        """What can be read only once."""
        self._unpacking.once(name, stream)

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
                path = Path(parent, name)
                self._file(path, _shown(prefix, path, folder))

    def _is_new(self, status: os.stat_result) -> bool:
        key = (status.st_dev, status.st_ino)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _file(self, path: Path, name: str) -> None:
        name = _printable(name)
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                self._found.skip(name, "it is no file")
            elif self._is_new(status):
                stamp = f"{status.st_size}-{status.st_mtime_ns}"
                self._take(look_at(path, name), name, str(path), status.st_size, stamp)
        except READ_ERRORS as error:
            self._found.failed(name, error)

    def _remote(self, name: str, file: remote.RemoteFile) -> None:
        with remote.open_url(file.url) as stream:
            head = b""
            while len(head) < HEAD_BYTES and (piece := stream.read(HEAD_BYTES - len(head))):
                head += piece
        self._take(look(head, name), name, file.url, file.size, file.stamp)

    def _take(self, seen: Look, name: str, url: str, size: int | None, stamp: str) -> None:
        if seen.archive:
            with remote.open_url(url) as stream:
                self._unpacking.archive(name, url, stamp, stream)
        else:
            source = Source(
                name, url, seen.kind, size, packed=seen.packed, prefix=seen.prefix, stamp=stamp
            )
            self._found.add(source, seen.beginning)


def _matching(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  # patterns may be absolute


def _shown(prefix: str, path: str | Path, folder: Path) -> str:
    return Path(prefix, os.path.relpath(path, folder)).as_posix()


def _printable(name: str) -> str:
    """A file's name may be any bytes."""
    return os.fsencode(name).decode("utf-8", "replace")

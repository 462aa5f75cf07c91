"""Lines that no torch logger wrote: damage in a log file of ours, searched in a capture."""

from __future__ import annotations

from typing import Protocol

from traceview.parse.damage import Damage
from traceview.parse.messages import End, Foreign, clean
from traceview.parse.textlogs.autotune import Autotune
from traceview.parse.textlogs.cpp_warnings import CppWarnings
from traceview.parse.textlogs.cudagraphs import Overwrites
from traceview.parse.textlogs.python_warnings import PythonWarnings
from traceview.parse.textlogs.sink import RawLine, Sink


class Between(Protocol):
    """Whoever reads what stands between the messages."""

    #: What a line must hold to be of interest.
    needles: tuple[bytes, ...]

    def read(self, foreign: Foreign) -> None:
        """Lines, some of which may be of interest."""

    def end(self, end: End) -> None:
        """There are no more lines."""


class ForeignLines:
    """Counts the lines between messages that are not blank."""

    needles: tuple[bytes, ...] = (b"",)

    def __init__(self, name: str, damage: Damage) -> None:
        self._name = name
        self._damage = damage
        self._times = 0
        self._first: RawLine | None = None

    def read(self, foreign: Foreign) -> None:
        for number, line in foreign.numbered:
            if line and not line.isspace():
                self._times += 1
                if self._first is None:
                    self._first = RawLine(number, line)

    def end(self, end: End) -> None:
        if self._first is not None:
            number, data = self._first
            self._damage.count(self._name, "foreign_line", number, clean(data), times=self._times)
        if end.incomplete and end.damage is None:
            self._damage.count(self._name, "truncated", end.line, "the last line has no end")


class RawLines:
    """Autotuning tables and warnings in the lines between messages.

    A line is looked at if it may begin one, or while one is open.
    """

    needles: tuple[bytes, ...] = (
        b"Warning: ", b".cpp:", b"AUTOTUNE ", b"utotune Choices Stats:",
        b"output of CUDAGraphs that has been overwritten",
    )  # fmt: skip

    def __init__(self, sink: Sink, damage: Damage) -> None:
        self._autotune = Autotune(sink, damage)
        self._readers = (
            self._autotune, PythonWarnings(sink), CppWarnings(sink), Overwrites(sink),
        )  # fmt: skip
        self._open = False

    def read(self, foreign: Foreign) -> None:
        self._autotune.after = foreign
        needles = [needle for needle in self.needles if needle in foreign.data]
        if not self._open and not needles:
            return
        for number, line in foreign.numbered:
            if self._open or any(needle in line for needle in needles):
                self._line(number, line)

    def end(self, end: End) -> None:  # noqa: ARG002
        """What is open is complete."""
        for reader in self._readers:
            reader.end()

    def _line(self, number: int, line: bytes) -> None:
        for part in line.removesuffix(b"\r").split(b"\r"):
            for reader in self._readers:
                reader.line(RawLine(number, part))
        self._open = any(reader.open for reader in self._readers)

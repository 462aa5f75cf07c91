"""Lines that no torch logger wrote: damage in a log file of ours, searched in a capture."""

from __future__ import annotations

from traceview.parse.damage import Damage
from traceview.parse.textlogs.autotune import Autotune
from traceview.parse.textlogs.cpp_warnings import CppWarnings
from traceview.parse.textlogs.cudagraphs import Overwrites
from traceview.parse.textlogs.messages import Lines, Message, RawLine, clean
from traceview.parse.textlogs.python_warnings import PythonWarnings
from traceview.parse.textlogs.sink import Sink

#: What a line must hold to begin something that is searched for.
_NEEDLES = (b"Warning: ", b".cpp:", b"AUTOTUNE", b"utotune Choices", b"CUDAGraphs that has been")


class ForeignLines:
    """Counts the lines between messages that are not blank."""

    def __init__(self, name: str, damage: Damage) -> None:
        self._name = name
        self._damage = damage
        self._times = 0
        self._first: RawLine | None = None

    def begins(self, message: Message) -> None: ...

    def block(self, data: bytes) -> bool:  # noqa: ARG002
        return True

    def line(self, number: int, data: bytes) -> None:
        if data and not data.isspace():
            self._times += 1
            if self._first is None:
                self._first = RawLine(number, data)

    def end(self, lines: Lines) -> None:
        if self._first is not None:
            number, data = self._first
            self._damage.count(self._name, "foreign_line", number, clean(data), times=self._times)
        if lines.incomplete and lines.error is None:
            self._damage.count(self._name, "truncated", lines.number, "the last line has no end")


class RawLines:
    """Autotuning tables and warnings in the lines between messages.

    A line is looked at if it may begin one, or while one is open.
    """

    def __init__(self, sink: Sink, damage: Damage) -> None:
        self._autotune = Autotune(sink, damage)
        self._readers = (
            self._autotune, PythonWarnings(sink), CppWarnings(sink), Overwrites(sink),
        )  # fmt: skip
        self._open = False
        self._needles: tuple[bytes, ...] = ()

    def begins(self, message: Message) -> None:
        """Tables that follow are of the compile that this message is of."""
        self._autotune.context(message)

    def block(self, data: bytes) -> bool:
        self._needles = tuple(needle for needle in _NEEDLES if needle in data)
        return self._open or bool(self._needles)

    def line(self, number: int, data: bytes) -> None:
        if not self._open and not any(needle in data for needle in self._needles):
            return
        for part in data.split(b"\r") if b"\r" in data else (data,):
            for reader in self._readers:
                reader.line(RawLine(number, part))
        self._open = any(reader.open for reader in self._readers)

    def end(self, lines: Lines) -> None:  # noqa: ARG002
        """What is open is complete."""
        for reader in self._readers:
            reader.end()

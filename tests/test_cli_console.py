"""The progress tag: on a terminal only, at its right edge, and the user's own text stays whole."""

import os
import pty
import re
import select
import sys

import pytest

from traceview.cli import console as console_module
from traceview.cli.console import Console

WIDTH = 80


class Screen:
    """As much of a terminal as the tag uses: rows of characters and a cursor."""

    def __init__(self):
        self.rows, self.row, self.column, self._saved = [[]], 0, 0, (0, 0)

    def feed(self, text):
        for code, number, kind, character in re.findall(
            r"\x1b([78])|\x1b\[(\d*)([A-Za-z])|(.)", text, re.DOTALL
        ):
            if code == "7":
                self._saved = (self.row, self.column)
            elif code == "8":
                self.row, self.column = self._saved
            elif kind == "G":
                self.column = int(number) - 1
            elif kind == "K":
                del self.rows[self.row][self.column :]
            elif character:
                self._type(character)
        return self

    def _type(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            self.rows += [] if self.row < len(self.rows) else [[]]
        else:
            line = self.rows[self.row]
            line += [" "] * (self.column + 1 - len(line))
            line[self.column] = character
            self.column += 1

    @property
    def lines(self):
        return ["".join(row).rstrip() for row in self.rows]


class Terminal:
    """A pseudo-terminal that ``console`` makes our stderr, as pytest has its own until then."""

    def __init__(self, monkeypatch):
        self._ours, theirs = pty.openpty()
        self._stderr = os.fdopen(theirs, "w")
        self._monkeypatch = monkeypatch
        monkeypatch.setenv("COLUMNS", str(WIDTH))
        monkeypatch.setenv("TERM", "xterm")

    def console(self):
        self._monkeypatch.setattr(sys, "stderr", self._stderr)
        return Console()

    def arrived(self):
        self._stderr.flush()
        data = b""
        while select.select([self._ours], [], [], 0.1)[0]:
            data += os.read(self._ours, 1 << 16)
        return data.decode()

    def close(self):
        self._monkeypatch.undo()
        self._stderr.close()
        os.close(self._ours)


@pytest.fixture
def terminal(monkeypatch):
    made = Terminal(monkeypatch)
    yield made
    made.close()


def test_the_tag_stands_at_the_right_edge_and_goes_again(terminal):
    console, screen = terminal.console(), Screen()
    console.progress("cold compile")
    screen.feed(terminal.arrived())
    assert screen.lines == ["traceview: cold compile".rjust(WIDTH - 1)]
    assert (screen.row, screen.column) == (0, 0)
    console.progress("warm-up")
    screen.feed(terminal.arrived())
    assert screen.lines == ["traceview: warm-up".rjust(WIDTH - 1)]
    console.progress(None)
    assert screen.feed(terminal.arrived()).lines == [""]


def test_what_the_script_writes_on_the_same_line_stays_whole(terminal):
    console, screen = terminal.console(), Screen()
    screen.feed("epoch 1: ")
    console.progress("paired block 3/8")
    screen.feed(terminal.arrived())
    screen.feed("loss 0.25")
    console.progress(None)
    screen.feed(terminal.arrived())
    screen.feed(", done\r\n")
    assert screen.lines == ["epoch 1: loss 0.25, done", ""]


def test_a_sentence_takes_the_tag_away_first(terminal):
    console, screen = terminal.console(), Screen()
    console.progress("profiling")
    console.say("reading the logs")
    assert screen.feed(terminal.arrived()).lines == ["traceview: reading the logs", ""]


def test_taking_away_what_is_not_there_writes_nothing(terminal):
    console = terminal.console()
    console.progress(None)
    console.say("x")
    assert terminal.arrived() == "traceview: x\r\n"


@pytest.mark.parametrize(("variable", "value"), [("TERM", "dumb"), ("COLUMNS", "40")])
def test_a_terminal_that_has_no_room_gets_no_tag(terminal, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    console = terminal.console()
    console.progress("cold compile")
    console.say("x")
    assert terminal.arrived() == "traceview: x\r\n"


def test_no_tag_in_a_pipe(capfd):
    Console().progress("cold compile")
    assert capfd.readouterr().err == ""


def test_a_pipe_gets_a_line_after_ten_silent_seconds(capfd, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(console_module.time, "monotonic", lambda: now[0])
    console = Console()
    for second in range(30):
        now[0] = 100.0 + second
        console.progress(f"cold compile, {second} s")
        if second == 5:
            console.say("a sentence")
        console.progress(None)
    assert capfd.readouterr().err.splitlines() == [
        "traceview: a sentence",
        "traceview: cold compile, 15 s",
        "traceview: cold compile, 25 s",
    ]


def test_no_line_where_a_script_writes_too(capfd, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(console_module.time, "monotonic", lambda: now[0])
    console = Console(lines=False)
    now[0] += 60
    console.progress("cold compile, 60 s")
    console.say("a sentence")
    assert capfd.readouterr().err == "traceview: a sentence\n"

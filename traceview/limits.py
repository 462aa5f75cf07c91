"""How much of an input is read: one limit for each dimension, with what happens beyond it.

``limits.now`` are the limits in effect. ``--limit NAME=VALUE`` replaces some of them for a command;
processes that read get them with their task, those that read ahead by the environment.
docs/inputs.md has the table.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate

import msgspec
from msgspec.structs import replace

from traceview.errors import UsageError
from traceview.json_errors import NOT_JSON

#: Limits for a process that is started to read, as JSON.
VARIABLE = "TRACEVIEW_LIMITS"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER = re.compile(
    r"([0-9]{1,18}(?:\.[0-9]{1,9}(?=\s*[KMGT]))?)\s*([KMGT]?)(?:iB|B)?", re.IGNORECASE
)


#: Memory for an event of a trace where most is needed, once it is read and explained.
_EVENT_BYTES = 2_000


def _memory() -> int:
    """A quarter of the machine's memory, at most 1.9 GB: below 2 GB, what exceeds it included."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(machine // 4, 19 * 10**8)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes are in bytes."""

    depth: int = 200
    """Brackets in brackets, of a payload."""
    digits: int = 1_000
    """Of a whole number."""
    text: int = 1_000_000
    """A text in a table, as a graph. Guards and generated code may be 20 times as long."""
    line: int = 1 << 20
    """A line of a text log."""
    record: int = 1 << 26
    """A record of a structured log, a line of collected events; a trace event: a quarter."""
    records: int = 50_000_000
    """Records of a structured log, messages of a text log, lines of collected events."""
    events: int = msgspec.field(default_factory=lambda: _memory() // _EVENT_BYTES)
    """Host events, and device events, of a profiler trace: as many as ``memory`` is enough for."""
    rows: int = 50_000_000
    """Rows of one table that are made of one file."""
    files: int = 100_000
    """Files that are looked at, in folders."""
    members: int = 100_000
    """Files in an archive."""
    archives: int = 2
    """Archives in each other."""
    ratio: int = 200
    """Bytes unpacked for each packed one, once there are ``bomb`` of them: logs pack to 5 to 10 %,
    a run of one line to 1 %."""
    bomb: int = 1 << 30
    """Unpacked bytes of a file up to which any ratio is plausible."""
    unpacked: int = 1 << 38
    """Bytes that are copied out of archives and standard input, of all together."""
    names: int = 50_000
    """Names, and shapes, of a trace: a model has some thousands."""
    processes: int = 5_000
    """Of one structured log: what is known of each takes some 40 kB."""
    ids: int = 100_000
    """Ranks and messages of a log that are remembered."""
    seconds: int = 60
    """CPU time for a file, and one more for each MB of it."""
    memory: int = msgspec.field(default_factory=_memory)
    """Of all processes of a post-mortem together."""
    page: int = 2_000_000
    """report.html."""

    @property
    def event(self) -> int:
        """Bytes of one event of a trace."""
        return self.record // 4

    @property
    def long_text(self) -> int:
        """Characters of a compile's guards and code: some 350 a guard, 30,000 a kernel."""
        return self.text * 20


def number(text: str) -> int | None:
    """``40M``, ``8GiB`` or ``1.5g`` as a number, by binary units; None for anything else."""
    found = _NUMBER.fullmatch(text.strip())
    return int(float(found[1]) * _UNITS[found[2].upper()]) if found else None


def with_given(texts: Iterable[str]) -> Limits:
    """The limits in effect, with those that ``NAME=VALUE`` says; UsageError for others."""
    given = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        most = number(value)
        if name not in Limits.__struct_fields__ or most is None:
            fact = f"--limit {text} is no limit that traceview has."
            names = ", ".join(Limits.__struct_fields__)
            remedy = f"Use NAME=VALUE, such as memory=8G, with one of these names: {names}."
            raise UsageError(fact, remedy, slug="unknown-limit")
        given[name] = max(1, most)
    if "memory" in given:
        given.setdefault("events", given["memory"] // _EVENT_BYTES)
    return replace(now, **given)


def as_variable() -> dict[str, str]:
    """What a process that is started needs in its environment."""
    return {VARIABLE: msgspec.json.encode(now).decode()}


try:
    now = msgspec.json.decode(os.environ.get(VARIABLE, "{}"), type=Limits)
except NOT_JSON:
    now = Limits()


@contextmanager
def used(limits: Limits) -> Iterator[None]:
    """``limits`` are in effect in here; decoders of JSON keep to ``digits`` by Python's own."""
    global now
    former, now = now, limits
    digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(max(limits.digits, sys.int_info.str_digits_check_threshold))
    try:
        yield
    finally:
        now = former
        sys.set_int_max_str_digits(digits)


_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(set(range(256)) - set(_STEP))


def check_depth(data: bytes) -> None:
    """ValueError if JSON nests deeper than ``depth``: Python's own limit depends on who calls."""
    if data.count(b"[") + data.count(b"{") > now.depth:
        brackets = _TEXT.sub(b"", data).translate(None, _NO_BRACKETS)
        if max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > now.depth:
            raise ValueError(f"nested deeper than {now.depth}")

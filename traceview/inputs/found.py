"""What a search for logs gives, in order and without what repeats something else in it.

Some folders are known as a whole: run folders of ours, and what tlparse made of a log. Of a run
folder only the raw logs of its passes are read, of tlparse's only the log that it copied: the rest
says the same again. What lies in an archive is treated alike.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import zip_longest

import msgspec
from msgspec.structs import replace

from traceview.inputs.source import Source
from traceview.inputs.streams import READ_ERRORS, damage_of

NO_LOG = "nothing of torch's was seen in it"


class Skipped(msgspec.Struct, frozen=True):
    """Something that is not read, and why."""

    name: str
    reason: str


class Damaged(msgspec.Struct, frozen=True):
    """A file, folder or archive that could not be looked at to its end; ``kind`` counts it."""

    name: str
    kind: str
    what: str


class Found(msgspec.Struct):
    """What there is to read, in order of name, what is left out, and what could not be looked at.

    ``beginnings`` holds, by name, a digest of each source's first bytes: same bytes, same digest.
    """

    sources: list[Source] = []
    skipped: list[Skipped] = []
    damaged: list[Damaged] = []
    beginnings: dict[str, str] = {}

    def add(self, source: Source, beginning: str) -> None:
        """A source, unless nothing of torch's is in it."""
        if source.kind == "unknown":
            self.skip(source.name, NO_LOG)
            return
        self.sources.append(source)
        self.beginnings[source.name] = beginning

    def skip(self, name: str, reason: str) -> None:
        """One thing left out."""
        self.skipped.append(Skipped(as_text(name), reason))

    def failed(self, name: str, error: Exception) -> None:
        """One of READ_ERRORS that came while ``name`` was looked at."""
        self.damaged.append(Damaged(as_text(name), *damage_of(error)))

    def leave_out_copies(self) -> None:
        """What is there twice is read once: a log and its packed copy, or tlparse's."""

        def same(one: Source, other: Source) -> bool:
            try:
                with one.open() as a, other.open() as b:
                    return all(x == y for x, y in zip_longest(_blocks(a.read), _blocks(b.read)))
            except READ_ERRORS:
                return False

        kept: list[Source] = []
        by_beginning: dict[str, list[Source]] = {}
        for source in self.sources:
            alike = by_beginning.setdefault(self.beginnings.get(source.name, source.name), [])
            if source.run is None and source.kind != "empty":
                twin = next((other for other in alike if same(other, source)), None)
                if twin is not None:
                    self.skip(source.name, f"the same bytes as {twin.name}")
                    continue
                alike.append(source)
            kept.append(source)
        self.sources = kept


def as_text(name: str) -> str:
    """The name of a file as text, for tables: it may be any bytes."""
    return os.fsencode(name).decode("utf-8", "replace")


_RAW, _RAW_SOURCES = "raw/", "raw/sources/"
_COPIED, _REWRITTEN, _INDEX = "raw.log", "raw.jsonl", "compile_directory.json"
_BLOCK = 1 << 20


def settled(found: Found) -> Found:
    """``found`` in order of name, without what repeats something else in it."""
    from traceview.run import MANIFEST  # here: the processes that read need no run

    runs = [
        source.name.removesuffix(MANIFEST)
        for source in found.sources
        if source.kind == "manifest" and source.name.rpartition("/")[2] == MANIFEST
    ]
    for root in sorted(runs, key=len):
        kept = []
        for source in found.sources:
            inside = source.name.removeprefix(root)
            if not source.name.startswith(root):
                kept.append(source)
            elif inside == MANIFEST or (
                inside.startswith(_RAW) and not inside.startswith(_RAW_SOURCES)
            ):
                kept.append(replace(source, run=root.rstrip("/") or "."))
        found.sources = kept
        found.skipped = [entry for entry in found.skipped if not entry.name.startswith(root)]

    names = {*(s.name for s in found.sources), *(s.name for s in found.skipped)}
    for root in [n.removesuffix(_INDEX) for n in names if n.rpartition("/")[2] == _INDEX]:
        log = copied = root + _COPIED
        if copied not in names:
            if root + _REWRITTEN not in names:
                continue
            found.skip(copied, "tlparse's report is here, but not the log it was made of")
            log = root + "chromium_events.json"
        found.sources = [s for s in found.sources if not s.name.startswith(root) or s.name == log]
        found.skipped = [
            s for s in found.skipped if not s.name.startswith(root) or s.name == copied
        ]

    found.sources.sort(key=lambda source: source.name)
    found.leave_out_copies()
    return found


def _blocks(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Blocks of one size, whatever ``read`` gives, but for the last."""
    held = b""
    while piece := read(_BLOCK):
        held += piece
        while len(held) >= _BLOCK:
            yield held[:_BLOCK]
            held = held[_BLOCK:]
    yield held

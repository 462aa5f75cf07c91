"""Which parser reads which kind of log; each gives tables, whole or in batches."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from traceview.derive.job.digests import Digests
from traceview.inputs import READ_ERRORS, Source, damage_of
from traceview.parse import chromium, collected, kineto, structured, textlogs
from traceview.parse.damage import Damage
from traceview.reading.processes import rank_in_name
from traceview.tables import empty

Batches = Iterator[tuple[str, pl.DataFrame]]
_STANCE = re.compile(r"(?:^|/)(eager|compiled)-\d+(?:-\d+)?(-lines)?\.json")


def parse(source: Source, part: str, damage: Damage) -> Batches:
    """Tables of one log; ``part`` stands in its compile keys where other runs have the pass."""
    reader = _READERS.get(source.kind)
    if reader is not None:
        yield from reader(source, part, damage)


def _structured(source: Source, part: str, damage: Damage) -> Batches:
    if source.path is not None:
        read = structured.read_path(source.path, source.name, damage, pass_name=part)
        yield from _complete(_digested(read))
        return
    with source.open() as stream:
        read = structured.read_stream(stream, source.name, damage, pass_name=part)
        yield from _complete(_digested(read))


def _complete(batches: Batches) -> Batches:
    """The same, and the tables of which the log has no row: it was looked for them.

    Cudagraphs are skipped when the code runs, mostly: without rows, this log can't tell.
    """
    missing = dict.fromkeys(structured.TABLES)
    missing.pop("cudagraph_events")
    for name, frame in batches:
        missing.pop(name, None)
        yield name, frame
    yield from ((name, empty(name)) for name in missing)


def _digested(batches: Iterable[tuple[str, pl.DataFrame]]) -> Batches:
    """The same, and what tells this rank's compiles from another one's, while texts are there."""
    digests = Digests()
    for name, frame in batches:
        digests.see(name, frame)
        yield name, frame
    yield "compile_digests", digests.frame()


def _text(source: Source, part: str, damage: Damage) -> Batches:
    with source.open() as stream:
        yield from textlogs.read_stream(stream, source.name, damage, pass_name=part)


def _chromium(source: Source, part: str, damage: Damage) -> Batches:
    with source.open() as stream:
        yield from chromium.read_stream(stream, source.name, damage, pass_name=part)


def _kineto(source: Source, part: str, damage: Damage) -> Batches:
    named = _STANCE.search(source.name)
    if named is not None and named[2]:
        return  # a step with the user's lines marked: its times say nothing
    stance = named[1] if named else None
    with source.open() as stream:
        yield from kineto.read_stream(
            stream, source.name, damage,
            pass_name=part, rank=rank_in_name(source.name), stance=stance,
        )  # fmt: skip


def _events(source: Source, part: str, damage: Damage) -> Batches:  # noqa: ARG001
    with _local(source, damage) as path:
        yield from collected.read_file(path, source.name, damage).items()


@contextmanager
def _local(source: Source, damage: Damage) -> Iterator[Path]:
    if source.path is not None:
        yield source.path
        return
    with tempfile.NamedTemporaryFile() as copy:
        try:
            with source.open() as stream:
                while block := stream.read(1 << 20):
                    copy.write(block)
        except READ_ERRORS as error:  # what came before it is read
            kind, what = damage_of(error)
            damage.count(source.name, kind, None, what)
        copy.flush()
        yield Path(copy.name)


_READERS: dict[str, Callable[[Source, str, Damage], Batches]] = {
    "structured": _structured,
    "textlog": _text,
    "stderr": _text,
    "kineto": _kineto,
    "chromium": _chromium,
    "events": _events,
}

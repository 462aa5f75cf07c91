"""The structured log (TORCH_TRACE): one pass over each file, one parser for each kind of record.

``parse.cutting`` cuts the bytes into records, ``kinds`` lists the parsers, ``state`` keeps what is
known of each process while its log is read, ``settled`` gives tables in batches, so that memory
stays the same however long the log is. Nothing is judged here, and nothing that a log holds is
imported, evaluated or opened.
"""

from __future__ import annotations

import gc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from traceview import limits
from traceview.errors import described
from traceview.parse.cutting import AHEAD_BYTES, Readable, Record, cuts, cuts_ahead
from traceview.parse.damage import READER_FAILED, Damage
from traceview.parse.files import opened, rank_in_name
from traceview.parse.merge import Frames, gathered
from traceview.parse.structured import compiles, decode, dynamo, kinds, settled
from traceview.parse.structured.graphs import with_node_counts
from traceview.parse.structured.state import TABLES, Process, Reader, Row, Tally
from traceview.run import PassRecord, Run
from traceview.tables import empty

__all__ = ["TABLES", "read_pass", "read_path", "read_stream"]


#: Bytes of payloads after which rows that nothing can change any more are given away.
BATCH_BYTES = 8 << 20

Batches = Iterator[tuple[str, pl.DataFrame]]


def read_pass(run: Run, record: PassRecord, damage: Damage) -> Frames:
    """Tables of every structured log of one pass; an empty dict where the pass has none."""
    folder = run.raw(record) / "structured"
    files = sorted(p for p in folder.glob("*.log*") if p.is_file()) if folder.is_dir() else []
    return gathered(
        batch
        for path in files
        for batch in read_path(path, run.relative(path), damage, pass_name=record.name)
    )


def read_path(path: Path, name: str, damage: Damage, *, pass_name: str = "logs") -> Batches:
    """(table, rows) of the log at ``path``, packed or not; ``raw_file`` and damage say ``name``.

    A large file is cut into records by a second process.
    """
    reading = _Reading(name, damage, pass_name)
    try:
        with opened(path) as stream:
            if stream.seekable() and path.stat().st_size >= AHEAD_BYTES:
                yield from reading.batches(cuts_ahead(path, reading.report))
            else:
                yield from reading.batches(cuts(_Whole(stream, reading), reading.report))
    except OSError as error:
        reading.report("unreadable_file", None, error.strerror or str(error))
        yield from reading.batches(iter(()))  # what was read stays


def read_stream(stream: Readable, name: str, damage: Damage, *, pass_name: str = "logs") -> Batches:
    """The same of an unpacked stream; where it breaks off with an error, that is counted."""
    reading = _Reading(name, damage, pass_name)
    return reading.batches(cuts(_Whole(stream, reading), reading.report))


class _Reading:
    """What is kept while one log is read."""

    def __init__(self, name: str, damage: Damage, pass_name: str) -> None:
        self._rank = rank_in_name(name.rpartition("/")[2])  # of a folder's rank, reading decides
        self._name = name
        self._damage = damage
        self._pass_name = pass_name
        self._readers: dict[int, Reader] = {}
        self._told: set[str] = set()

    def report(self, kind: str, line: int | None, example: str) -> None:
        """Count a piece of damage."""
        self._damage.count(self._name, kind, line, example)

    def batches(self, records: Iterator[Record]) -> Batches:
        """The tables that ``records`` tell of, those without rows too.

        Cudagraphs are skipped when the code runs, mostly: without rows, this log can't tell.
        """
        held = 0
        with _no_garbage():
            for number, record in enumerate(records):
                if number >= limits.now.records:
                    self.report("too_many_records", record.line, f"more than {number}")
                    break
                self._take(record)
                held += record.size
                if held >= BATCH_BYTES:
                    held = 0
                    for reader in self._readers.values():
                        yield from self._frames(reader.process, settled.rows(reader.process))
            for reader in self._readers.values():
                process = reader.process
                compiles.finish(process)
                dynamo.finish(process)
                process.rows["log_records"].extend(
                    {
                        "pass": process.pass_name,
                        "rank": process.rank,
                        "pid": process.pid,
                        "key": key,
                        "name": name,
                        "known": tally.parser is not None,
                        "records": tally.records,
                        "payload_bytes": tally.payload_bytes,
                        "raw_file": process.raw_file,
                    }
                    for (key, name), tally in process.tallies.items()
                )
                yield from self._frames(process, settled.all_rows(process))
        for table in TABLES:
            if table not in self._told and table != "cudagraph_events":
                yield table, empty(table)

    def _frames(self, process: Process, tables: Iterator[tuple[str, list[Row]]]) -> Batches:
        for table, rows in tables:
            self._told.add(table)
            found = settled.frame(table, rows)
            yield table, with_node_counts(found) if table == "graphs" else found
        for table, blocks in settled.blocks(process):
            self._told.add(table)
            yield table, settled.frame_of_blocks(table, blocks)

    def _take(self, record: Record) -> None:
        """Give ``record`` to its parser and count it."""
        pid = record.pid
        reader = self._readers.get(pid)
        if reader is None:
            if len(self._readers) >= limits.now.processes:
                self.report("too_many_processes", record.line, f"of process {pid}")
                return
            process = Process(pid, self._pass_name, self._name, self._rank)
            reader = self._readers[pid] = Reader(process, self._damage)
        process = reader.process
        if record.context.rank is not None:
            process.rank = record.context.rank
        if record.key == "artifact" and record.name is None:
            artifact = decode.decode(reader, record, record.body, kinds.ARTIFACT)
            record.name = artifact.name if artifact else None
        kind = record.key, record.name
        tally = process.tallies.get(kind)
        if tally is None:
            tally = process.tallies[kind] = Tally(kinds.parser_of(*kind))
        if tally.parser is not None:
            try:
                tally.parser(reader, record)
            except (OSError, MemoryError):  # the log can't be read on
                raise
            except Exception as error:  # noqa: BLE001 - a defect costs its record only
                reader.unreadable(record, READER_FAILED, described(error))
        tally.records += 1
        tally.payload_bytes += record.size


class _Whole:
    """A stream that ends where it can't be read or unpacked any further, and says so."""

    def __init__(self, stream: Readable, reading: _Reading) -> None:
        self._stream = stream
        self._reading = reading

    def read(self, size: int, /) -> bytes:
        try:
            return self._stream.read(size)
        except (EOFError, zlib.error) as error:
            self._reading.report(getattr(error, "kind", "truncated"), None, str(error))
        except OSError as error:
            self._reading.report("unreadable_file", None, error.strerror or str(error))
        return b""


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Without the collector: what is kept has no cycles, and looking for them costs a third."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()

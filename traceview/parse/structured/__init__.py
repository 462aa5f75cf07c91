"""The structured log (TORCH_TRACE): one pass over each file, one parser for each kind of record.

``records`` cuts the bytes into records, ``kinds`` lists the parsers, ``state`` keeps what is known
of each process while its log is read. Nothing is judged here, and nothing that a log holds is
imported, evaluated or opened.
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import BinaryIO

import polars as pl

from traceview.parse.damage import Damage
from traceview.parse.structured import breaks, compiles, kernels, kinds, phases
from traceview.parse.structured.records import Readable, Record, iter_records
from traceview.parse.structured.state import TABLES, Process, Reader, Row
from traceview.parse.structured.unpack import Unpacker
from traceview.run import PassRecord, Run
from traceview.tables import from_rows

__all__ = ["read_file", "read_pass"]

_RANK_IN_NAME = re.compile(r"_rank_(\d{1,6})[_.]")
_GZIP = b"\x1f\x8b"


def read_pass(run: Run, record: PassRecord, damage: Damage) -> dict[str, pl.DataFrame]:
    """Tables of every structured log of one pass; an empty dict where the pass has none."""
    folder = run.raw(record) / "structured"
    files = sorted(p for p in folder.glob("*.log*") if p.is_file()) if folder.is_dir() else []
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    for path in files:
        _gather(rows, _read(path, record.name, run.relative(path), damage))
    return _frames(rows) if files else {}


def read_file(
    path: Path, damage: Damage, *, pass_name: str = "logs", name: str | None = None
) -> dict[str, pl.DataFrame]:
    """Tables of one TORCH_TRACE file, gzipped or not; ``name`` is what ``raw_file`` says.

    A file that can't be read or unpacked to its end is counted in ``damage``; what was read stays.
    """
    rows: dict[str, list[Row]] = {table: [] for table in TABLES}
    _gather(rows, _read(path, pass_name, name or path.name, damage))
    return _frames(rows)


def _read(path: Path, pass_name: str, name: str, damage: Damage) -> list[Process]:
    processes: dict[int, Process] = {}
    named = _RANK_IN_NAME.search(path.name)
    rank = int(named[1]) if named else None
    try:
        with path.open("rb") as raw:
            for record in iter_records(_unpacked(raw), name, damage):
                process = processes.get(record.pid)
                if process is None:
                    process = Process(record.pid, pass_name, name, rank)
                    processes[record.pid] = process
                _take(Reader(process, damage), record)
    except (EOFError, zlib.error) as error:
        damage.count(name, "truncated", None, str(error))
    except OSError as error:
        damage.count(name, "unreadable_file", None, error.strerror or str(error))
    for process in processes.values():
        _finish(process)
    return list(processes.values())


def _unpacked(raw: BinaryIO) -> Readable:
    packed = raw.read(2) == _GZIP
    raw.seek(0)
    return Unpacker(raw) if packed else raw


def _take(reader: Reader, record: Record) -> None:
    """Give ``record`` to its parser and count it."""
    process = reader.process
    if record.context.rank is not None:
        process.rank = record.context.rank
    if record.key == "artifact":
        record.name = kinds.artifact_name(reader, record)
    parse = kinds.parser_of(record.key, record.name)
    if parse is not None:
        parse(reader, record)
    process.counts[record.key, record.name] += 1
    process.payload_bytes[record.key, record.name] += len(record.payload)


def _finish(process: Process) -> None:
    """What needs the whole log: joined compiles, derived values, counts, the rank of early rows."""
    phases.finish(process)
    compiles.finish(process)
    breaks.finish(process)
    kernels.finish(process)
    for (key, name), count in process.counts.items():
        process.rows["log_records"].append(
            {
                "pass": process.pass_name,
                "rank": process.rank,
                "pid": process.pid,
                "key": key,
                "name": name,
                "known": kinds.parser_of(key, name) is not None,
                "records": count,
                "payload_bytes": process.payload_bytes[key, name],
                "raw_file": process.raw_file,
            }
        )
    for rows in process.rows.values():
        for row in rows:
            if row["rank"] is None:
                row["rank"] = process.rank


def _gather(rows: dict[str, list[Row]], processes: list[Process]) -> None:
    for process in processes:
        for table, found in process.rows.items():
            rows[table].extend(found)


def _frames(rows: dict[str, list[Row]]) -> dict[str, pl.DataFrame]:
    """Cudagraphs are skipped when the code runs, mostly: without rows, this log can't tell."""
    return {
        table: from_rows(table, found)
        for table, found in rows.items()
        if found or table != "cudagraph_events"
    }

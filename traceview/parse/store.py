"""Tables on disk, as Parquet.

Those of a run folder are kept there and read back while its raw files are the same. Those of a pile
of logs are written in pieces that are worth a file, packed in memory first.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import polars as pl

from traceview.errors import is_defect
from traceview.json_errors import NOT_JSON
from traceview.run import Run, write_whole
from traceview.schema import all_tables
from traceview.tables import Tables, scan_parquet, write_parquet

STAMP = "parsed.json"
#: Rows wait until all of them take this much memory; then the largest table is a piece.
HELD_BYTES = 12 << 20


def load(run: Run) -> Tables | None:
    """What ``save`` kept; None if there is nothing, it is of other raw files, or is damaged."""
    folder = run.tables_folder
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        if stamp["fingerprint"] != fingerprint(run):
            return None
        known = [name for name in all_tables() if name in stamp["tables"]]
        files = {name: folder / f"{name}.parquet" for name in known}
        return Tables({name: scan_parquet([file]).collect() for name, file in files.items()})
    except (OSError, *NOT_JSON, TypeError, KeyError, pl.exceptions.PolarsError):
        return None


def save(run: Run, tables: Tables) -> bool:
    """Keep ``tables``; False where the folder can't be written: then they are parsed again."""
    folder = run.tables_folder
    stamp = {"fingerprint": fingerprint(run), "tables": list(tables)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / STAMP).unlink(missing_ok=True)
        for stale in folder.glob("*.parquet"):
            stale.unlink()
        tables.save(folder)
        write_whole(folder / STAMP, json.dumps(stamp))
    except OSError:
        return False
    return True


def fingerprint(run: Run) -> str:
    """Of the passes, the raw files' names, sizes and times, and of every table's declaration."""
    digest = hashlib.sha256()
    for record in run.manifest.passes:
        digest.update(repr(record).encode("utf-8", "surrogateescape"))
        folder = run.raw(record)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found = path.stat()
                name = path.relative_to(folder).as_posix()
                line = f"{name}\0{found.st_size}\0{found.st_mtime_ns}\n"
                digest.update(line.encode(errors="replace"))
    digest.update(repr([spec.polars_schema for spec in all_tables().values()]).encode())
    return digest.hexdigest()


def in_pieces(batches: Iterator[tuple[str, pl.DataFrame]]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Batches of a table put together, as long as all that waits takes little memory.

    A file costs 1 ms whatever it holds.
    """
    waiting: dict[str, list[pl.DataFrame]] = {}
    held: Counter[str] = Counter()
    ended: BaseException | None = None
    try:
        for name, frame in batches:
            waiting.setdefault(name, []).append(frame)
            held[name] += int(frame.estimated_size())
            while held.total() > HELD_BYTES:
                largest = max(held, key=lambda table: held[table])
                yield largest, pl.concat(waiting.pop(largest))
                del held[largest]
    except BaseException as error:
        if not is_defect(error):
            raise
        ended = error  # what came before it stands
    for name, frames in waiting.items():
        yield name, pl.concat(frames)
    if ended is not None:
        raise ended


class Writer:
    """Writes pieces of tables as ``folder/TABLE.K.parquet``; ``written`` says how many of each.

    Packing runs in a thread of its own, one piece behind the reading, so that memory stays bounded.
    """

    def __init__(self, folder: Path) -> None:
        self.written: dict[str, int] = {}
        self.rows = 0
        self._folder = folder
        self._thread = ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown()
        if self._last is not None:
            self._last.result()

    def keep(self, name: str, frame: pl.DataFrame, path: Path) -> None:
        """Take over a piece that lies in the folder already, as ``frame`` at ``path``."""
        piece = self.written.setdefault(name, 0)
        path.rename(self._folder / f"{name}.{piece}.parquet")
        self.written[name] += 1
        self.rows += frame.height

    def add(self, name: str, frame: pl.DataFrame) -> None:
        """Write ``frame`` as the next piece of table ``name`` (counted even without rows).

        Its pass is left out: where the piece lies will say it.
        """
        piece = self.written.setdefault(name, 0)
        if frame.is_empty():
            return
        if self._last is not None:
            self._last.result()
        path = self._folder / f"{name}.{piece}.parquet"
        self._last = self._thread.submit(write_parquet, frame.drop("pass"), path, level=1)
        self.written[name] += 1
        self.rows += frame.height

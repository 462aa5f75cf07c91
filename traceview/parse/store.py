"""Parsed tables kept as Parquet in the run folder, and read back while raw files are the same."""

from __future__ import annotations

import hashlib
import json

import polars as pl

from traceview.run import Run
from traceview.schema import all_tables
from traceview.tables import Tables

STAMP = "parsed.json"


def load(run: Run) -> Tables | None:
    """What ``save`` kept; None if there is nothing, it is of other raw files, or is damaged."""
    folder = run.tables_folder
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        if stamp["fingerprint"] != fingerprint(run):
            return None
        known = [name for name in all_tables() if name in stamp["tables"]]
        return Tables({name: pl.read_parquet(folder / f"{name}.parquet") for name in known})
    except (OSError, ValueError, TypeError, KeyError, pl.exceptions.PolarsError):
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
        (folder / STAMP).write_text(json.dumps(stamp), encoding="utf-8")
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

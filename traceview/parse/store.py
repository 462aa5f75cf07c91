"""Parsed tables kept as Parquet in the run folder, and read back while raw files are the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl

from traceview.run import Run
from traceview.schema import all_tables
from traceview.tables import Tables

STAMP = "parsed.json"


def load(run: Run) -> Tables | None:
    """What ``save`` kept; None if there is nothing, it is of other raw files, or is damaged."""
    folder = run.tables_folder
    stamp = _read_stamp(folder / STAMP)
    if stamp.get("fingerprint") != fingerprint(run):
        return None
    names = stamp.get("tables")
    known = [name for name in all_tables() if isinstance(names, list) and name in names]
    try:
        return Tables({name: pl.read_parquet(folder / f"{name}.parquet") for name in known})
    except (OSError, ValueError, pl.exceptions.PolarsError):
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


def _read_stamp(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}

"""Tables ``inputs`` and ``jobs``: what was read, and what it is of."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonpath

import polars as pl

from traceview.inputs import Found
from traceview.reading.homes import Places
from traceview.reading.jobs import Start
from traceview.reading.parts import Home, Part, Seen
from traceview.tables import Tables, from_rows


def summary(logs: Found, found: Sequence[Part], places: Places) -> Tables:
    """Both tables."""
    read = [
        _input(part, seen, home)
        for part in found
        for seen, home in zip(part.processes, places.homes(part), strict=True)
    ]
    skipped = (
        {"pass": "logs", "name": item.name, "kind": "skipped", "error": item.reason}
        for item in logs.skipped
    )
    inputs = from_rows("inputs", [*read, *skipped])
    files = inputs.group_by("pass").agg(pl.col("part").n_unique().alias("files"))
    counted: dict[str, int] = dict(files.iter_rows())
    jobs = sorted(places.starts, key=lambda start: (start.job, start.attempt))
    sizes = _world_sizes(found, places)
    rows = (_job(start, counted.get(start.pass_name), sizes.get(start.pass_name)) for start in jobs)
    return Tables({"inputs": inputs, "jobs": from_rows("jobs", rows)})


def _input(part: Part, seen: Seen, home: Home) -> dict[str, object]:
    by_process = seen.rank is None and home.rank is not None
    return {
        "pass": home.pass_name, "rank": home.rank, "name": part.name, "url": part.url,
        "kind": part.kind, "part": part.part, "pid": seen.pid,
        "rank_from": "process" if by_process else seen.rank_from, "host": seen.host,
        "began_us": seen.began_us, "ended_us": seen.ended_us, "size_bytes": part.size,
        "bytes_read": part.bytes_read, "records": seen.records, "rows": part.rows,
        "damaged": part.damaged, "stamp": part.stamp, "error": part.error,
    }  # fmt: skip


def _world_sizes(found: Sequence[Part], places: Places) -> dict[str, int]:
    """Pass → ranks that its job had, as its logs say."""
    told: dict[str, int] = {}
    for part in found:
        for seen, home in zip(part.processes, places.homes(part), strict=True):
            if seen.world_size:
                told[home.pass_name] = max(seen.world_size, told.get(home.pass_name, 0))
    return told


def _job(start: Start, files: int | None, world_size: int | None) -> dict[str, object]:
    return {
        "pass": start.pass_name, "job": start.job, "attempt": start.attempt,
        "ranks": len(start.ranks) or None, "processes": len(start.members),
        "world_size": world_size,
        "folder": _common(start.folders), "began_us": start.began_us,
        "ended_us": start.ended_us, "files": files, "records": start.records,
    }  # fmt: skip


def _common(folders: set[str]) -> str:
    try:
        return commonpath(folders)
    except ValueError:  # absolute and relative ones, or none
        return ""

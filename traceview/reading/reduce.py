"""The reduce: parts to partitioned tables, and what all logs say together: ``inputs``, ``jobs``."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from os.path import commonpath
from pathlib import Path

import polars as pl

from traceview.inputs import Found, Source
from traceview.parse.damage import Damage
from traceview.reading import parts
from traceview.reading.executors import Executor
from traceview.reading.homes import Places
from traceview.reading.jobs import Start
from traceview.reading.mapping import Task, lost, read
from traceview.reading.opening import choose
from traceview.reading.parts import Home, Part, Seen
from traceview.reading.placing import forget, place
from traceview.run import PassRecord, Run
from traceview.tables import Tables, from_rows

Progress = Callable[[int, int], None]


def read_all(
    run: Run,
    logs: Found,
    executor: Executor,
    *,
    resume: bool = False,
    progress: Progress = lambda done, of: None,  # noqa: ARG005
) -> list[Part]:
    """Read ``logs`` into ``run``: its tables, ``inputs`` and ``jobs``, and the passes it has.

    With ``resume``, a log that was read before and has not changed since is not read again.
    """
    (run.folder / parts.FOLDER).mkdir(exist_ok=True)
    tasks = [Task(source, str(run.folder.absolute())) for source in logs.sources]
    kept = [part for task in tasks if resume and (part := _unchanged(run, task)) is not None]
    read_before = {part.part for part in kept}
    todo = sorted(
        (task for task in tasks if task.part not in read_before),
        key=lambda task: -(task.source.size or 0),  # the longest first: none is waited for alone
    )
    _forget_others(run, read_before)
    found = list(kept)
    for task, result in executor.map(read, todo):
        found.append(result if isinstance(result, Part) else lost(task, result))
        progress(len(found), len(tasks))
    found.sort(key=lambda part: (part.name, part.part))
    _copy_sources(run, logs)
    _settle(run, logs, found)
    return found


def _settle(run: Run, logs: Found, found: Sequence[Part]) -> None:
    places = Places(found)
    for part in found:
        place(run.folder, part, places.homes(part))
    told = summary(logs, found, places)
    _unread(run, logs)
    told.put("inputs", choose(run.folder, told["inputs"]))
    told.save(run.tables_folder)
    names = sorted({start.pass_name for start in places.starts}) or ["logs"]
    run.manifest.passes = [PassRecord(name, "raw") for name in names]
    ranks = max((len(start.ranks) for start in places.starts), default=0)
    run.manifest.nproc = max(1, ranks)
    run.save()


def _copy_sources(run: Run, logs: Found) -> None:
    """Keep the copies of the user's files that run folders of ours hold: reports quote them."""
    target = run.folder / "raw" / "sources"
    for folder in sorted(
        {root for source in logs.sources if (root := _run_of(source)) is not None}
    ):
        copies = folder / "raw" / "sources"
        for path in sorted(copies.iterdir()) if copies.is_dir() else ():
            if path.is_file() and not path.is_symlink() and not (target / path.name).exists():
                shutil.copyfile(path, target / path.name)


def _run_of(source: Source) -> Path | None:
    """The local run folder of ours that a log lies in: ``source.run`` is named as it is."""
    if source.run is None or source.member is not None or not source.url.endswith(source.name):
        return None
    return Path(source.url.removesuffix(source.name) or ".") / source.run


def _unread(run: Run, logs: Found) -> None:
    """Damage that was met before any log was read: archives and folders that can't be opened."""
    path = run.tables_folder / "unreadable" / "pass=logs" / "search.parquet"
    path.unlink(missing_ok=True)
    damage = Damage()
    for item in logs.damaged:
        damage.count(item.name, item.kind, None, item.what)
    if damage.total:
        path.parent.mkdir(parents=True, exist_ok=True)
        damage.frame("logs").drop("pass").write_parquet(path)


def _unchanged(run: Run, task: Task) -> Part | None:
    part = parts.load(run.folder, task.part)
    if part is None or part.error is not None or task.source.stamp is None:
        return None
    there = all(p.is_file() for table in part.tables for p in parts.pieces(run.folder, part, table))
    return part if there and part.stamp == task.source.stamp else None


def _forget_others(run: Run, kept: set[str]) -> None:
    """Remove what was read of logs that are no longer named, or are to be read again."""
    for path in (run.folder / parts.FOLDER).iterdir():
        name = path.name.removesuffix(".json")
        if name in kept:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
            forget(run.folder, name)


# Tables ``inputs`` and ``jobs``.


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

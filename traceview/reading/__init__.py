"""Reading a pile of logs: a map over them (one part a log), and a small reduce.

executors   where the map runs
mapping     the map: a log to a part, by the parser of its kind
parts       what a part is on disk
processes   which processes a log is of
jobs        which processes were started together as attempts of one job; pass and rank of all rows
opening     the tables as derive and rules get them

The reduce is here: parts to partitioned tables, and what all logs say together: ``inputs``,
``jobs``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from os.path import commonpath
from pathlib import Path

import polars as pl

from traceview.inputs import Found
from traceview.parse.damage import Damage
from traceview.parse.merge import pid_of
from traceview.reading import parts
from traceview.reading.executors import Executor
from traceview.reading.jobs import Places
from traceview.reading.mapping import Task, lost, read
from traceview.reading.opening import choose, of_chosen, open_tables
from traceview.reading.parts import Home, Part, Placed
from traceview.run import PassRecord, Run, write_whole
from traceview.tables import Tables, from_rows, scan_parquet, write_parquet

__all__ = ["Part", "of_chosen", "open_tables", "read_all"]

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
    kept = [part for task in tasks if resume and (part := task.kept()) is not None]
    read_before = {part.part for part in kept}
    todo = sorted(
        (task for task in tasks if task.part not in read_before),
        key=lambda task: -(task.source.size or 0),  # the longest first: none is waited for alone
    )
    # What was read of logs that are no longer named, or are to be read again, is removed.
    known = (run.folder / parts.FOLDER).iterdir()
    stale = [path for path in known if path.name.removesuffix(".json") not in read_before]
    if todo or stale:  # without these the folder counts as not read to its end
        for name in ("inputs", "jobs"):
            (run.tables_folder / f"{name}.parquet").unlink(missing_ok=True)
    for path in stale:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
            forget(run.folder, path.stem)
    found = list(kept)
    for task, result in executor.map(read, todo):
        found.append(result if isinstance(result, Part) else lost(task, result))
        progress(len(found), len(tasks))
    found.sort(key=lambda part: (part.name, part.part))
    _copy_sources(run, logs)
    places = Places(found)
    for part in found:
        place(run.folder, part, places.homes(part))
    told = summary(logs, found, places)
    # Damage that was met before any log was read: archives and folders that can't be opened.
    path = run.tables_folder / "unreadable" / "pass=logs" / "search.parquet"
    path.unlink(missing_ok=True)
    damage = Damage()
    for item in logs.damaged:
        damage.count(item.name, item.kind, None, item.what)
    if damage.total:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parquet(damage.frame("logs").drop("pass"), path)
    told.put("inputs", choose(run.folder, told["inputs"]))
    told.save(run.tables_folder)
    names = sorted({start.pass_name for start in places.starts}) or ["logs"]
    run.manifest.passes = [PassRecord(name, "raw") for name in names]
    ranks = max((len(start.ranks) for start in places.starts), default=0)
    run.manifest.nproc = max(1, ranks)
    run.save()
    return found


def _copy_sources(run: Run, logs: Found) -> None:
    """Keep the copies of the user's files that run folders of ours hold: reports quote them."""
    target = run.folder / "raw" / "sources"
    folders: set[Path] = set()
    for source in logs.sources:
        # Local folders of ours: ``source.run`` is named as ``source.name`` is.
        if source.run and source.member is None and source.url.endswith(source.name):
            folders.add(Path(source.url.removesuffix(source.name) or ".") / source.run)
    for folder in sorted(folders):
        copies = folder / "raw" / "sources"
        for path in sorted(copies.iterdir()) if copies.is_dir() else ():
            if path.is_file() and not path.is_symlink() and not (target / path.name).exists():
                write_whole(target / path.name, path.read_bytes())


# Parts to partitioned tables: ``tables/NAME/pass=P/PART.parquet``, which polars and DuckDB read.
#
# A part whose rows all belong to one pass, with the ranks that they have, is moved. What needs more
# (ranks, several passes, compiles that another log names) is written again; its first form stays.


_KEY = pl.col("compile_key")


def place(run: Path, part: Part, homes: list[Home]) -> None:
    """Put the part's tables where ``homes`` say, unless they are there already."""
    if part.placed is not None and part.placed.homes == homes:
        return
    # The pass to which every row goes as it is; None where rows must be changed.
    passes = {home.pass_name for home in homes}
    changed = any(
        home.log is not None or (seen.unranked and home.rank is not None)
        for seen, home in zip(part.processes, homes, strict=True)
    )
    moved = passes.pop() if not changed and len(passes) == 1 else None
    before = {table: parts.pieces(run, part, table) for table in part.tables}
    if part.placed is not None and part.placed.moved is None:
        forget(run, part.part)
    for table, files in before.items():
        for number, file in enumerate(files):
            if moved is not None:
                target = parts.placed_path(run, part, table, moved, number)
            else:
                target = run / parts.FOLDER / part.part / f"{table}.{number}.parquet"
                for pass_name, rows in _settled(
                    scan_parquet([file]).collect(), table, homes
                ).items():
                    settled = parts.placed_path(run, part, table, pass_name, number)
                    settled.parent.mkdir(parents=True, exist_ok=True)
                    write_parquet(rows, settled, level=1)
            if target != file:
                target.parent.mkdir(parents=True, exist_ok=True)
                file.replace(target)
    part.placed = Placed(homes, moved)
    parts.save(run, part)


def forget(run: Path, part: str) -> None:
    """Remove what lies of a part in ``tables/``."""
    for path in (run / "tables").glob(f"*/pass=*/{part}*.parquet"):
        path.unlink()


def _settled(frame: pl.DataFrame, table: str, homes: list[Home]) -> dict[str, pl.DataFrame]:
    """Rows by pass, with ranks and keys of the structured log, without what that log has."""
    # What becomes of the rows of each process and rank as the log has them.
    known: dict[tuple[int | None, int | None], tuple[str, int | None, str | None, bool]] = {}
    for home in homes:
        row = (home.pass_name, home.rank, home.log, table in home.told)
        known[home.pid, home.told_rank] = row
    for home in homes:  # rows from before the rank was known, and those that name no process
        row = known[home.pid, home.told_rank]
        known.setdefault((home.pid, None), row)
        if len(homes) == 1:
            known.setdefault((None, home.told_rank), row)
            known.setdefault((None, None), row)
    schema = {
        "_pid": pl.Int64,
        "rank": pl.Int32,
        "_pass": pl.String,
        "_rank": pl.Int32,
        "_log": pl.String,
        "_told": pl.Boolean,
    }
    rows = [(*key, *row) for key, row in known.items()]
    processes = pl.DataFrame(rows, schema=schema, orient="row")
    joined = frame.with_columns(pid_of(frame).alias("_pid")).join(
        processes, on=["_pid", "rank"], how="left", nulls_equal=True, maintain_order="left"
    )
    columns = [
        pl.col("_pass").fill_null(homes[0].pass_name),
        pl.coalesce("rank", "_rank").alias("rank"),
    ]
    if "compile_key" in frame.columns:
        named = pl.concat_str("_log", _KEY.str.extract(r"^[^:]*(:.*)$"))
        columns.append(pl.coalesce(named, _KEY).alias("compile_key"))
    settled = joined.with_columns(columns).filter(~pl.col("_told").fill_null(False))
    return {
        str(key[0]): rows.select(frame.columns)
        for key, rows in settled.partition_by("_pass", as_dict=True).items()
    }


# Tables ``inputs`` and ``jobs``.


_OF_PART = ("name", "url", "kind", "part", "bytes_read", "rows", "damaged", "stamp", "error")
_OF_SEEN = ("pid", "host", "began_us", "ended_us", "records")
_OF_START = ("job", "attempt", "began_us", "ended_us", "records")


def summary(logs: Found, found: Sequence[Part], places: Places) -> Tables:
    """Both tables."""
    rows: list[dict[str, object]] = []
    sizes: dict[str, int] = {}  # pass → ranks that its job had, as its logs say
    for part in found:
        for seen, home in zip(part.processes, places.homes(part), strict=True):
            by_process = seen.rank is None and home.rank is not None
            row = {
                "pass": home.pass_name,
                "rank": home.rank,
                "rank_from": "process" if by_process else seen.rank_from,
                "size_bytes": part.size,
                **{name: getattr(part, name) for name in _OF_PART},
                **{name: getattr(seen, name) for name in _OF_SEEN},
            }
            rows.append(row)
            if seen.world_size:
                sizes[home.pass_name] = max(seen.world_size, sizes.get(home.pass_name, 0))
    for item in logs.skipped:
        rows.append({"pass": "logs", "name": item.name, "kind": "skipped", "error": item.reason})
    inputs = from_rows("inputs", rows)
    files = inputs.group_by("pass").agg(pl.col("part").n_unique().alias("files"))
    counted: dict[str, int] = dict(files.iter_rows())
    jobs: list[dict[str, object]] = []
    for start in sorted(places.starts, key=lambda start: (start.job, start.attempt)):
        common = ""
        with suppress(ValueError):  # absolute and relative ones, or none
            common = commonpath(start.folders)
        job = {
            "pass": start.pass_name,
            "ranks": len(start.ranks) or None,
            "processes": len(start.members),
            "world_size": sizes.get(start.pass_name),
            "folder": common,
            "files": counted.get(start.pass_name),
            **{name: getattr(start, name) for name in _OF_START},
        }
        jobs.append(job)
    return Tables({"inputs": inputs, "jobs": from_rows("jobs", jobs)})

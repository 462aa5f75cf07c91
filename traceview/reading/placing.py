"""Parts to partitioned tables: ``tables/NAME/pass=P/PART.parquet``, which polars and DuckDB read.

A part whose rows all belong to one pass, with the ranks that they have, is moved. What needs more
(ranks, several passes, compiles that another log names) is written again; its first form stays.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from traceview.parse.merge import pid_of
from traceview.reading import parts
from traceview.reading.parts import Home, Part, Placed

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
                for pass_name, rows in _settled(pl.read_parquet(file), table, homes).items():
                    settled = parts.placed_path(run, part, table, pass_name, number)
                    settled.parent.mkdir(parents=True, exist_ok=True)
                    scratch = settled.with_suffix(".part")
                    rows.write_parquet(scratch, compression="zstd", compression_level=1)
                    scratch.replace(settled)
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
    processes = _by_process(table, homes)
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


def _by_process(table: str, homes: list[Home]) -> pl.DataFrame:
    """What becomes of the rows of each process and rank as the log has them."""
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
    return pl.DataFrame([(*key, *row) for key, row in known.items()], schema=schema, orient="row")

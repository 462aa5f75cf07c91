"""One set of tables from several logs: which log is believed where two say the same, and ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

Frames = dict[str, pl.DataFrame]

# The structured log quotes every graph break and knows epochs; text shortens repeated ones.
_STRUCTURED_FIRST = ("graph_breaks", "recompiles", "generated_kernels")
# Text has cudagraph events of run time too, the structured log each compile's last skip reason.
_TEXT_FIRST = ("cudagraph_events",)
_DEVICE = ("kernels", "kernel_launches")
_PID = pl.col("compile_key").str.extract(r"^[^:]*:(\d+):").cast(pl.Int64, strict=False)


def combine(structured: Frames, text: Frames) -> Frames:
    """Tables of one pass. A table is there if either log could have rows for it.

    The choice is made per process: a rank whose structured log is lost keeps its text.
    """
    merged = {**structured, **text}
    for name in structured.keys() & text.keys():
        first, second = structured[name], text[name]
        if name in _STRUCTURED_FIRST:
            merged[name] = pl.concat([first, _of_other_processes(second, first)])
        elif name in _TEXT_FIRST:
            merged[name] = pl.concat([second, _of_other_processes(first, second)])
        elif name == "graphs":
            code = first.filter(pl.col("kind") == "output_code")
            merged[name] = pl.concat([first, _of_other_processes(second, code)])
        elif name == "autotune_choices":
            merged[name] = autotune(first, second)
        else:
            merged[name] = pl.concat([first, second])
    return merged


def together(*sources: Frames) -> Frames:
    """Every table of ``sources``; one that several of them have has the rows of all, in order."""
    return gathered(item for source in sources for item in source.items())


def gathered(batches: Iterable[tuple[str, pl.DataFrame]]) -> Frames:
    """Whole tables of batches of rows, which stay in order."""
    parts: dict[str, list[pl.DataFrame]] = {}
    for name, frame in batches:
        parts.setdefault(name, []).append(frame)
    return {name: pl.concat(frames) for name, frames in parts.items()}


def without_device(profile: Frames) -> Frames:
    """A profile that saw no device says nothing of devices: its device tables are not recorded."""
    if all(profile[name].is_empty() for name in _DEVICE if name in profile):
        return {name: frame for name, frame in profile.items() if name not in _DEVICE}
    return profile


def ranks_of(frames: Sequence[pl.DataFrame]) -> dict[int, int]:
    """pid to rank, from tables with both columns; the first that knows a pid is believed."""
    ranks: dict[int, int] = {}
    for frame in frames:
        known = frame.select("pid", "rank").drop_nulls().unique(maintain_order=True)
        for pid, rank in known.iter_rows():
            ranks.setdefault(pid, rank)
    return ranks


def fill_ranks(frame: pl.DataFrame, ranks: Mapping[int, int]) -> pl.DataFrame:
    """``frame`` with null ranks filled in where the row says its process, or there is one rank.

    A script that starts torch.distributed by hand has its rank in torch's own log alone.
    """
    if not ranks or frame.is_empty():
        return frame
    if not {"pid", "compile_key"} & {*frame.columns}:
        only = next(iter(ranks.values())) if len(set(ranks.values())) == 1 else None
        return frame.with_columns(pl.col("rank").fill_null(pl.lit(only, dtype=pl.Int32)))
    pids, found = list(ranks), list(ranks.values())
    known = pid_of(frame).replace_strict(pids, found, default=None, return_dtype=pl.Int32)
    return frame.with_columns(pl.coalesce(pl.col("rank"), known).alias("rank"))


def pid_of(frame: pl.DataFrame) -> pl.Expr:
    """The process that each row of a table is of; null where the table does not tell."""
    if "pid" in frame.columns:
        return pl.col("pid")
    return _PID if "compile_key" in frame.columns else pl.lit(None, dtype=pl.Int64)


def _of_other_processes(rows: pl.DataFrame, covered: pl.DataFrame) -> pl.DataFrame:
    """Rows of processes that ``covered`` has no rows of; all rows if it is empty."""
    if covered.is_empty():
        return rows
    pids = covered.select(_PID).to_series().drop_nulls().unique()
    return rows.filter(_PID.is_not_null() & ~_PID.is_in(pids.to_list()))


def autotune(structured: pl.DataFrame, text: pl.DataFrame) -> pl.DataFrame:
    """Text tables (the whole ranking), their compiles from the structured log where text had none.

    A table is recognised by operator and shapes; one that never reached stderr is kept as it is.
    """
    same = ["op", "shapes"]
    found = (
        structured.filter(pl.col("compile_key").is_not_null())
        .unique(same, keep="first", maintain_order=True)
        .select(*same, _rank="rank", _key="compile_key", _id="compile_id")
    )
    joined = text.with_row_index("_row").join(found, on=same, how="left").sort("_row")
    named = joined.with_columns(
        pl.coalesce("rank", "_rank").alias("rank"),
        pl.coalesce("compile_key", "_key").alias("compile_key"),
        pl.coalesce("compile_id", "_id").alias("compile_id"),
    )
    unheard = structured.join(text.select(same).unique(), on=same, how="anti")
    return pl.concat([named.select(text.columns), unheard])

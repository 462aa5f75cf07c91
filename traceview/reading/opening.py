"""The tables of a post-mortem as derive and rules get them.

A job of 512 ranks compiled the same few graphs 512 times. So what is long (texts, guards, generated
code) is given of *chosen* ranks only: of each group of ranks that compiled the same, the first.
And of the compiles that cost most only, since a log may hold thousands. All the rest is given of
all ranks and compiles, and on disk everything stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath

import polars as pl

from traceview.errors import NothingToAnalyse
from traceview.parse.merge import autotune
from traceview.reading import parts
from traceview.reading.parts import Part
from traceview.run import Run
from traceview.schema import all_tables
from traceview.tables import Tables, from_rows, grouped, scan_parquet

#: Ranks that are chosen at most: of the largest groups.
MOST_CHOSEN = 6
#: Compiles of each attempt whose texts are given: the slowest.
MOST_COMPILES = 24
#: And as much text of them: graphs are taken apart in Python, at some MB a second.
MOST_TEXT_BYTES = 2 << 20
_OF_SLOWEST = frozenset(("graphs", "generated_kernels", "kernel_calls", "guards", "symbols"))
_OF_CHOSEN = _OF_SLOWEST | {
    "compile_phases",
    "fusions",
    "schedules",
    "perf_hints",
    "inductor_metrics",
}
#: What is of all ranks together, whichever were chosen.
_OF_ALL = frozenset(("inputs", "jobs", "rank_waits", "unreadable", "log_records"))
_TEXTS = ("textlog", "stderr")
_PROCESS = pl.col("compile_key").str.extract(r"^([^:]*:\d+):")


def open_tables(run: Run) -> Tables:
    """Every table that the logs have; most are read when first used."""
    recorded = {table for part in all_parts(run.folder) for table in part.tables}
    try:
        inputs, jobs = (
            scan_parquet([run.tables_folder / f"{name}.parquet"]).collect()
            for name in ("inputs", "jobs")
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        fact = f"The post-mortem in {run.folder} was not read to its end ({error})."
        remedy = "Run `traceview postmortem` again with the same logs and --resume."
        raise NothingToAnalyse(fact, remedy, slug="unfinished") from error
    chosen = _ranks(inputs)
    read = partial(_read, run.folder)
    traces = read("traces", _scan(run.folder, "traces"))
    aside = parts_aside(traces, inputs)
    result = Tables({"inputs": inputs})
    # of every trace, also of those that are set aside
    result.put_later("unreadable", partial(read, "unreadable", _scan(run.folder, "unreadable")))
    slowest: list[str] | None = None
    for name in all_tables():  # compiles come before what is read of the slowest
        if name in recorded and name != "unreadable":
            ranks = chosen if name in _OF_CHOSEN else None
            scan = partial(_scan, run.folder, name, ranks, aside)
            if name == "graphs" and slowest is not None:
                with _intact(run.folder, name):
                    slowest, graphs = _within_budget(scan, slowest)
                result.put(name, graphs)
                continue
            compiles = slowest if name in _OF_SLOWEST else None
            result.put_later(name, partial(read, name, scan(compiles)))
        if name == "compiles":
            spent = (
                result["compiles"]
                .join(chosen, on=["pass", "rank"], how="semi", nulls_equal=True)
                .drop_nulls("compile_key")
                .group_by("pass", "compile_key", maintain_order=True)
                .agg(pl.col("duration_us").sum())
                .sort("duration_us", descending=True, maintain_order=True)
            )
            most = spent.group_by("pass", maintain_order=True).head(MOST_COMPILES)
            slowest = most["compile_key"].to_list()
    result.put("jobs", jobs)
    if aside:
        result.put("traces", chosen_traces(traces))
        result.put("notes", pl.concat([result["notes"], notes_of(traces)]))
    # Where a text log has more than the structured log of the same process, it is believed.
    is_text = pl.col("raw_file").is_in(
        result["inputs"].filter(pl.col("kind").is_in(_TEXTS))["name"].unique().to_list()
    )
    if result.has("cudagraph_events"):
        events = result["cudagraph_events"]
        told = events.filter(is_text).select(_PROCESS).to_series().drop_nulls().unique()
        repeated = ~is_text & _PROCESS.is_in(told.to_list())
        result.put("cudagraph_events", events.filter(~repeated.fill_null(False)))
    if result.has("autotune_choices"):
        choices = result["autotune_choices"]
        joined = autotune(choices.filter(~is_text), choices.filter(is_text))
        result.put("autotune_choices", joined)
    return result


def of_chosen(tables: Tables) -> Tables:
    """The tables with rows of chosen ranks only: what rules, which look at each rank, are given."""
    if not tables.has("inputs"):
        return tables
    chosen, key = _ranks(tables["inputs"]), ("pass", "rank")

    def rows(name: str) -> pl.DataFrame:
        """Those of chosen ranks; the table itself where it has no others."""
        frame = tables[name]
        others = frame.select(key).unique().join(chosen, on=key, how="anti", nulls_equal=True)
        if others.is_empty():
            return frame
        return frame.join(chosen, on=key, how="semi", nulls_equal=True)

    kept = tables.copy()
    for name in tables:
        if name not in _OF_ALL and "rank" in all_tables()[name].polars_schema:
            kept.put_later(name, partial(rows, name))
    return kept


def choose(run: Path, inputs: pl.DataFrame) -> pl.DataFrame:
    """``inputs`` with the ranks that are chosen marked."""
    digests = _read(run, "compile_digests", _scan(run, "compile_digests"))
    same = pl.struct("compile_id", "graph", "guards", "collectives").hash().sort()
    groups = (
        digests.group_by("pass", "rank")
        .agg(same.alias("same"))
        .sort("pass", "rank")
        .group_by("pass", "same", maintain_order=True)
        .agg(pl.col("rank").first(), pl.len().alias("ranks"))
        .sort("ranks", descending=True, maintain_order=True)
        .group_by("pass", maintain_order=True)
        .head(MOST_CHOSEN)
    )
    ranks = inputs.select("pass", "rank").unique()
    untold = ranks.join(groups, on="pass", how="anti").sort("pass", "rank")
    first = untold.group_by("pass", maintain_order=True).head(MOST_CHOSEN)
    nobody = ranks.filter(pl.col("rank").is_null())
    chosen = pl.concat([groups.select("pass", "rank"), first, nobody]).unique()
    chosen = chosen.with_columns(chosen=pl.lit(True))
    marked = inputs.drop("chosen").join(
        chosen, on=["pass", "rank"], how="left", nulls_equal=True, maintain_order="left"
    )
    return marked.with_columns(pl.col("chosen").fill_null(False))


def all_parts(run: Path) -> list[Part]:
    """Every part of the run, in order of name."""
    names = (path.stem for path in (run / parts.FOLDER).glob("*.json"))
    loaded = (parts.load(run, name) for name in names)
    return sorted((part for part in loaded if part is not None), key=lambda part: part.name)


def _ranks(inputs: pl.DataFrame) -> pl.DataFrame:
    return inputs.filter(pl.col("chosen")).select("pass", "rank").unique()


def _within_budget(
    read: Callable[[list[str]], pl.LazyFrame], slowest: list[str]
) -> tuple[list[str], pl.DataFrame]:
    """Of the slowest compiles, slowest first, those whose texts are not too long; their graphs.

    ``read`` scans the graphs of some compiles. Few are looked at first: one log may hold a hundred
    times the text that is wanted, and usually the slowest compile has enough of it.
    """
    size = pl.col("text").str.len_bytes().sum()
    graphs = read(slowest[:1]).collect()
    spent = graphs.filter(pl.col("compile_key").is_in(slowest[:1])).select(size).item()
    if spent >= MOST_TEXT_BYTES or len(slowest) < 2:
        return slowest[:1], graphs
    fitting = 1
    while fitting < len(slowest) and spent < MOST_TEXT_BYTES:
        keys = slowest[fitting : 2 * fitting + 1]
        sizes = read(keys).group_by("compile_key").agg(size)
        size_of = dict(sizes.collect().iter_rows())
        for key in keys:
            if spent < MOST_TEXT_BYTES:
                spent += size_of.get(key, 0)
                fitting += 1
    return slowest[:fitting], read(slowest[:fitting]).collect()


@contextmanager
def _intact(run: Path, name: str) -> Iterator[None]:
    """NothingToAnalyse if a file of the table is damaged, or of other columns."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        why = str(error).partition("\n")[0].rstrip(".")
        fact = f"Table {name} of the post-mortem in {run} is damaged ({why})."
        remedy = "Run `traceview postmortem` again with the same logs and another folder, -o DIR."
        raise NothingToAnalyse(fact, remedy, slug="damaged-table") from error


def _read(run: Path, name: str, scan: pl.LazyFrame) -> pl.DataFrame:
    with _intact(run, name):
        return scan.collect()


def _scan(
    run: Path,
    name: str,
    ranks: pl.DataFrame | None = None,
    aside: frozenset[str] = frozenset(),
    compiles: Sequence[str] | None = None,
) -> pl.LazyFrame:
    """The rows of one table; of these passes and ranks, and of these compiles, if any are given.

    What belongs to no compile is among those of every compile. Parts that are set aside are not
    opened.
    """
    schema = all_tables()[name].polars_schema
    found = (run / "tables" / name).glob("pass=*/*.parquet")
    kept = [path for path in found if not aside or path.stem.split("-")[0] not in aside]
    if not kept:
        return pl.LazyFrame(schema=schema)
    files = grouped(sorted(kept), by=lambda path: path.parent.name)
    scan = pl.concat(
        scan_parquet(files[folder]).with_columns(pl.lit(folder.partition("=")[2]).alias("pass"))
        for folder in sorted(files)
    )
    if compiles is not None:
        key = pl.col("compile_key")
        scan = scan.filter(key.is_null() | key.is_in(compiles))
    if ranks is not None:
        scan = scan.join(ranks.lazy(), on=["pass", "rank"], how="semi", nulls_equal=True)
    return scan.select(pl.col(column).cast(dtype) for column, dtype in schema.items())


# Profiler traces of one rank and stance, of which one is looked at. Rows name no trace: their times
# count from its beginning, and their numbers start again. Two traces of one rank in one table would
# be taken for one window in which everything happens at once. So derive and rules get the trace
# that holds most; on disk all stay, a file each.

MOST_NAMES = 5
_WINDOW = ("pass", "rank", "stance")


def chosen_traces(traces: pl.DataFrame) -> pl.DataFrame:
    """Of the traces of one rank and stance, the one with most events."""
    ordered = traces.sort("events", descending=True, nulls_last=True, maintain_order=True)
    return ordered.unique(_WINDOW, keep="first", maintain_order=True)


def parts_aside(traces: pl.DataFrame, inputs: pl.DataFrame) -> frozenset[str]:
    """The parts of all others."""
    names = traces.join(chosen_traces(traces), on=["pass", "name"], how="anti")["name"]
    return frozenset(inputs.filter(pl.col("name").is_in(names.implode()))["part"].drop_nulls())


def notes_of(traces: pl.DataFrame) -> pl.DataFrame:
    """Rows of table ``notes`` that name what is not looked at."""
    left = traces.join(chosen_traces(traces), on=["pass", "name"], how="anti")
    groups = left.group_by(_WINDOW, maintain_order=True).agg("name")
    rows = []
    for pass_name, rank, stance, names in groups.iter_rows():
        shown = ", ".join(PurePath(name).name for name in names[:MOST_NAMES])
        if len(names) > MOST_NAMES:
            shown += f" and {len(names) - MOST_NAMES} more"
        what = f"profiler traces not looked at, of {stance} steps: {shown}"
        whose = "processes whose rank is not known" if rank is None else f"rank {rank}"
        why = f"of several of {whose}, the one with most events is"
        rows.append({"pass": pass_name, "rank": rank, "what": what, "why": why})
    return from_rows("notes", rows)

"""What a step does in both stances: time accounting, counts, memory peaks, compiled callables."""

from __future__ import annotations

from collections import Counter

import polars as pl

from traceview.diagnosis.focus import STANCES, Focus, struct_of
from traceview.diagnosis.model import AccountRow, ComparedOutputs, OutputCheck, Region, StanceCounts
from traceview.tables import Tables

#: A script that calls torch.compile in a loop makes a region each time.
MOST_REGIONS = 200
#: Which source of a memory peak is the best: the allocator's own count, then the process's size.
PEAK_SOURCES = ("allocator", "profiler", "process")
#: Arguments of torch.compile with torch's defaults; only what differs is shown.
DEFAULTS = {
    "backend": None,
    "mode": None,
    "dynamic": "None",
    "fullgraph": False,
    "disable": False,
    "options": None,
}


def accounting(tables: Tables, focus: Focus) -> dict[str, tuple[AccountRow, ...]]:
    """Stance → its categories, largest first; both stances are keys, empty if not recorded."""
    rows = focus.rows(tables["accounting"].drop_nulls("ms"), largest="ms")
    return {
        stance: tuple(struct_of(AccountRow, row) for row in rows if row["stance"] == stance)
        for stance in STANCES
    }


def counts(tables: Tables, focus: Focus) -> dict[str, StanceCounts]:
    """Stance → what one step does; a stance of which nothing was recorded has only None.

    The peak of memory is the largest by the best source there is; timed blocks count before
    profiler windows.
    """
    windows = {row["stance"]: row for row in focus.rows(tables["step_counts"])}
    peaks = focus.rows(tables["memory"].drop_nulls("peak_bytes"))
    found = {}
    for stance in STANCES:
        mine = [row for row in peaks if row["stance"] == stance]
        sources = ([row for row in mine if row["source"] == source] for source in PEAK_SOURCES)
        best = next(filter(None, sources), [])
        timed = [row for row in best if row["block_index"] is not None] or best
        peak = max(timed, key=lambda row: row["peak_bytes"], default={"source": None})
        window = windows.get(stance, {})
        found[stance] = struct_of(StanceCounts, window | peak, peak_source=peak["source"])
    return found


def regions(tables: Tables, focus: Focus) -> tuple[Region, ...]:
    """The compiled callables of the process, those with the largest share of a step first."""
    costs = {row["region_id"]: row for row in focus.rows(tables["region_costs"])}
    owners = tables["compile_regions"].select("compile_key", "region_id")
    owners = owners.unique("compile_key", keep="last")
    # Places that break; compiles that were made again.
    sites = tables["break_sites"].filter(~pl.col("refused")).explode("compile_keys")
    places = sites.join(owners, left_on="compile_keys", right_on="compile_key")
    again = tables["recompiles"].select("compile_key").unique().join(owners, on="compile_key")
    breaks = Counter(places.unique(["region_id", "file", "line", "gb_type"])["region_id"])
    recompiles = Counter(again.unique(["region_id", "compile_key"])["region_id"])
    found = []
    for row in focus.rows(tables["regions"]):
        number = row["region_id"]
        cost = costs.get(number, {})
        given = {name: row[name] for name in DEFAULTS if row[name] is not None}
        found.append(
            struct_of(
                Region,
                row,
                arguments={name: given[name] for name in given if given[name] != DEFAULTS[name]},
                calls_per_step=cost.get("calls_per_step"),
                eager_ms=cost.get("eager_ms"),
                compiled_ms=cost.get("compiled_ms"),
                share=cost.get("share"),
                compile_seconds=cost.get("compile_s"),
                compiles=cost.get("compiles"),
                graph_breaks=breaks[number] if tables.has("break_sites") else None,
                recompiles=recompiles[number] if tables.has("recompiles") else None,
            )
        )
    found.sort(key=lambda region: (-(region.share or 0.0), region.region_id))
    return tuple(found[:MOST_REGIONS])


def compared_outputs(tables: Tables, focus: Focus) -> tuple[ComparedOutputs, ...]:
    """What ``--compare-outputs`` found, for each compiled callable that was called."""
    names = {row["region_id"]: row["name"] for row in focus.rows(tables["regions"])}
    outcomes = {row["region_id"]: row["outcome"] for row in focus.rows(tables["output_verdicts"])}
    checks = focus.rows(tables["output_checks"])
    return tuple(
        struct_of(
            ComparedOutputs,
            trial,
            name=names.get(trial["region_id"]) or "",
            outcome=outcomes[trial["region_id"]],
            checks=tuple(
                struct_of(OutputCheck, row)
                for row in checks
                if row["region_id"] == trial["region_id"]
            ),
        )
        for trial in focus.rows(tables["output_trials"])
    )

"""Each compiled callable: what was asked of torch.compile, what it costs, what happened to it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl

from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import Region
from traceview.tables import Tables

#: A script that calls torch.compile in a loop makes a region each time.
MOST_REGIONS = 200
#: Arguments of torch.compile with torch's defaults; only what differs is worth a word.
DEFAULTS = {
    "backend": None, "mode": None, "dynamic": "None", "fullgraph": False, "disable": False,
    "options": None,
}  # fmt: skip


def regions(tables: Tables, focus: Focus) -> tuple[Region, ...]:
    """The regions of the process, those with the largest share of a step first."""
    costs = {row["region_id"]: row for row in focus.rows(tables["region_costs"])}
    owners = dict(tables["compile_regions"].select("compile_key", "region_id").iter_rows())
    breaks = _count(tables, "graph_breaks", owners)
    recompiles = _count(tables, "recompiles", owners)
    found = [
        _region(row, costs.get(row["region_id"], {}), breaks, recompiles)
        for row in focus.rows(tables["regions"])
    ]
    found.sort(key=lambda region: (-(region.share or 0.0), region.region_id))
    return tuple(found[:MOST_REGIONS])


def _region(
    row: dict[str, Any],
    cost: dict[str, Any],
    breaks: Counter[int] | None,
    recompiles: Counter[int] | None,
) -> Region:
    identity = row["region_id"]
    return Region(
        region_id=identity,
        name=row["name"] or "?",
        kind=row["kind"] or "other",
        call_file=row["call_file"],
        call_line=row["call_line"],
        arguments={
            name: row[name]
            for name, default in DEFAULTS.items()
            if row[name] is not None and row[name] != default
        },
        calls=row["calls"],
        calls_per_step=cost.get("calls_per_step"),
        eager_ms=cost.get("eager_ms"),
        compiled_ms=cost.get("compiled_ms"),
        share=cost.get("share"),
        compile_seconds=cost.get("compile_s"),
        compiles=cost.get("compiles"),
        graph_breaks=None if breaks is None else breaks[identity],
        recompiles=None if recompiles is None else recompiles[identity],
    )


def _count(tables: Tables, name: str, owners: dict[str, int]) -> Counter[int] | None:
    """Per region, how many places (breaks) or compiles (recompiles); None if not recorded."""
    if not tables.has(name):
        return None
    what = ("user_file", "user_line", "gb_type") if name == "graph_breaks" else ("compile_key",)
    rows = tables[name].select("compile_key", *(pl.col(key).alias(f"what_{key}") for key in what))
    found = {(owners[row[0]], *row[1:]) for row in rows.iter_rows() if row[0] in owners}
    return Counter(region for region, *_ in found)

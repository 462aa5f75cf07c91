"""Where the run happened and what was read of it: versions, settings, damage, raw files."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import polars as pl

from traceview.derive.processes import logged_versions
from traceview.diagnosis.focus import Focus, Row, cut, struct_of
from traceview.diagnosis.model import Reading, ReadingRow
from traceview.json_errors import NOT_JSON
from traceview.run import Run
from traceview.tables import Tables

FACTS = (
    *("torch_version", "triton_version", "cuda_version", "driver_version", "python_version"),
    *("platform", "device_name", "device_count", "device_capability"),
    *("cpu_name", "cpu_threads"),
    *("step_kind", "steps_seen", "cwd"),
)
VALUE_CHARACTERS = 501  # with the ellipsis
MOST_DAMAGE, MOST_LINKS = 100, 60
#: What table configs calls them.
_LOGGED = ("torch", "triton", "cuda", "python")


def environment(run: Run, tables: Tables, focus: Focus) -> dict[str, Any]:
    """Facts of the process, its variables (section env) and its non-default settings."""
    process = focus.first(tables["runs"])
    settings = tables["environment"].unique(
        ["pass", "rank", "section", "name"], keep="first", maintain_order=True
    )
    rows = focus.rows(settings)
    logged: dict[str, str] = {}
    if not process:  # nothing was collected: the versions that the process's own logs name
        rank = pl.col("rank").eq_missing(pl.lit(focus.rank, dtype=pl.Int32))
        logged = logged_versions(tables, pl.col("pass") == focus.pass_name, rank)
    return {
        **{name: process.get(name) for name in FACTS},
        **{f"{name}_version": logged[name] for name in _LOGGED if name in logged},
        "argv": argv(process) or list(run.manifest.target),
        "rank": focus.rank,
        "ranks": max(run.manifest.nproc, tables["speedups"]["rank"].n_unique()),
        "variables": _variables(rows, by_traceview=False),
        "variables_of_traceview": _variables(rows, by_traceview=True),
        "settings": [
            {
                "section": row["section"],
                "name": row["name"],
                "value": cut(row["value"], VALUE_CHARACTERS),
                "default": cut(row["default"], VALUE_CHARACTERS),
                "set_by": row["set_by"],
            }
            for row in rows
            if row["section"] != "env"
        ],
    }


def argv(process: Row) -> list[str]:
    """The script's argv; an empty list where it was not recorded."""
    try:
        found = json.loads(process.get("argv") or "[]")
    except NOT_JSON:
        return []
    return [str(item) for item in found] if isinstance(found, list) else []


def _variables(rows: list[Row], by_traceview: bool) -> dict[str, str | None]:
    """Environment variables, the user's own or those that collecting needed."""
    return {
        row["name"]: cut(row["value"], VALUE_CHARACTERS)
        for row in rows
        if row["section"] == "env" and (row["set_by"] == "traceview") == by_traceview
    }


def reading(tables: Tables) -> Reading:
    """Records of the structured logs, unknown ones, and all damage of every file."""
    records = tables["log_records"]
    damage = tables["unreadable"].sort("times", descending=True)
    unknown = records.filter(~pl.col("known").fill_null(True))
    rows = damage.head(MOST_DAMAGE).with_columns(pl.col("kind").fill_null("unknown"))
    return Reading(
        records=int(records["records"].sum()),
        unreadable=int(damage["times"].sum()),
        unknown_records=int(unknown["records"].sum()),
        rows=tuple(
            struct_of(ReadingRow, row, times=row["times"] or 0)
            for row in rows.iter_rows(named=True)
        ),
    )


def links(run: Run) -> dict[str, str]:
    """Title → path relative to the run folder: tlparse's reports, profiler traces and raw logs."""
    found: dict[str, str] = {}
    for index in islice(sorted((run.folder / "tlparse").glob("**/index.html")), MOST_LINKS):
        where = index.parent.relative_to(run.folder / "tlparse").as_posix()
        found[f"tlparse: {where}"] = run.relative(index)
    for record in run.manifest.passes:
        raw = run.raw(record)
        for title, pattern in (
            ("text log", "torch_logs.txt"),
            ("stderr", "stderr.txt"),
            ("profiler trace", "profile/*.json.gz"),
            ("structured log", "structured/*"),
        ):
            for path in islice(sorted(raw.glob(pattern)), MOST_LINKS):
                found[f"{record.name}: {title} {path.name}"] = run.relative(path)
    return dict(islice(found.items(), 2 * MOST_LINKS))

"""Table ``compile_costs``, and the compile seconds of each region.

torch's cumulative times are nested (dynamo contains AOTAutograd, which contains Inductor, which
contains code generation), so each phase here is the difference to the next one inside it. A compile
that runs inside another one's span is taken out of the outer one's total.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import polars as pl

from traceview.tables import Tables, from_rows

Row = Mapping[str, Any]
RegionKey = tuple[str, int | None, int]
CompileRef = tuple[str | None, bool | None, float | None]
PHASES = ("dynamo_s", "aot_s", "inductor_s", "codegen_s")
_PROCESS = ("pass", "rank", "pid")  # hosts have the same pids
_ID = ("compile_key", "is_forward", "started_us")
_CODE = ("pass", "rank", "co_name", "co_filename", "co_firstlineno")
#: What is read of a compile here: the table has four times as many columns.
_READ = (
    *_CODE, *_ID, "user_file", "user_line", "duration_us", "dynamo_us", "aot_us", "inductor_us",
    "codegen_us", "backward_us",
)  # fmt: skip


def compile_costs(tables: Tables) -> pl.DataFrame:
    """Table ``compile_costs``: one row per code object, rank and pass."""
    inside = _nested_us(tables)
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for compile_ in tables["compiles"].select(_READ).iter_rows(named=True):
        groups[tuple(compile_[key] for key in _CODE)].append(compile_)
    return from_rows(
        "compile_costs",
        (dict(zip(_CODE, key, strict=True)) | _sum(rows, inside) for key, rows in groups.items()),
    )


def exclusive_phases(compile_: Row, nested_us: float = 0.0) -> dict[str, float]:
    """Seconds of one compile by phase; they add up to its whole duration less ``nested_us``."""
    codegen = compile_["codegen_us"] or 0.0
    inductor = max(compile_["inductor_us"] or 0.0, codegen)
    aot = max(compile_["aot_us"] or 0.0, compile_["backward_us"] or 0.0, inductor)
    whole = max(compile_["duration_us"] or 0.0, compile_["dynamo_us"] or 0.0, aot)
    if compile_["is_forward"] is False:  # a lazy backward has no tracing of its own
        aot = whole
    parts = [whole - aot, aot - inductor, inductor - codegen, codegen]
    if nested_us:  # a nested compile is called from the outermost phase that is long enough
        for number, micros in enumerate(parts):
            taken = min(micros, nested_us)
            parts[number] -= taken
            nested_us -= taken
    return {name: micros / 1e6 for name, micros in zip(PHASES, parts, strict=True)}


def _sum(compiles: list[Row], inside: Mapping[CompileRef, float]) -> dict[str, Any]:
    parts = [exclusive_phases(row, inside.get(id_of(row), 0.0)) for row in compiles]
    phases = {name: sum(part[name] for part in parts) for name in PHASES}
    starts = [row["started_us"] for row in compiles if row["started_us"] is not None]
    located = next((row for row in compiles if row["user_file"] is not None), compiles[0])
    return {
        "user_file": located["user_file"],
        "user_line": located["user_line"],
        "compiles": sum(1 for row in compiles if row["is_forward"] is not False),
        "total_s": sum(phases.values()),
        **phases,
        "first_started_us": min(starts, default=None),
    }


def id_of(compile_: Row) -> CompileRef:
    """What identifies a compile: forward and backward share their key."""
    return compile_["compile_key"], compile_["is_forward"], compile_["started_us"]


def _nested_us(tables: Tables) -> dict[CompileRef, float]:
    """Per compile, the time of other compiles that ran inside it (direct children only)."""
    inside: dict[CompileRef, float] = defaultdict(float)
    open_spans: list[tuple[CompileRef, Any, float]] = []
    known = tables["compiles"].drop_nulls(["started_us", "duration_us"])
    ordered = known.sort("pass", "rank", "pid", "started_us")
    for row in ordered.select(*_PROCESS, *_ID, "duration_us").iter_rows(named=True):
        process = tuple(row[name] for name in _PROCESS)
        start, end = row["started_us"], row["started_us"] + row["duration_us"]
        open_spans = [s for s in open_spans if s[1] == process and s[2] > start]
        if open_spans and end <= open_spans[-1][2]:
            inside[open_spans[-1][0]] += row["duration_us"]
        open_spans.append((id_of(row), process, end))
    return inside


def region_compiles(tables: Tables) -> dict[RegionKey, tuple[float, int]]:
    """(pass, pid, region_id) → (seconds, compiles) of the compiles that belong to the region."""
    inside = _nested_us(tables)
    compiles = {id_of(row): row for row in tables["compiles"].select(_READ).iter_rows(named=True)}
    found: dict[RegionKey, tuple[float, int]] = {}
    for row in tables["compile_regions"].iter_rows(named=True):
        region, identity = (row["pass"], row["pid"], row["region_id"]), id_of(row)
        seconds, count = found.get(region, (0.0, 0))
        seconds += sum(exclusive_phases(compiles[identity], inside.get(identity, 0.0)).values())
        found[region] = (seconds, count + (row["is_forward"] is not False))
    return found

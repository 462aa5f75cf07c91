"""What compiling took: tables ``compile_costs`` and ``ahead_compiles``.

torch's cumulative times are nested (dynamo contains AOTAutograd, which contains Inductor, which
contains code generation), so each phase here is the difference to the next one inside it. A compile
that runs inside another one's span is taken out of the outer one's total.

Compiling ahead of time, by AOTInductor or torch.export, has no compile id of torch.compile's: torch
logs it as phases and graphs that belong to no compile, and an export that does not trace bytecode
as nothing but a record that a program was exported.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import polars as pl

from traceview.tables import Tables, from_rows, grouped
from traceview.torchtext.phases import AOT_INDUCTOR, CAPTURE

Row = Mapping[str, Any]
PHASES = ("dynamo_s", "aot_s", "inductor_s", "codegen_s")
PROCESS = ("pass", "rank", "pid")  # hosts have the same pids
#: What identifies a compile: forward and backward share their key.
ID = ("compile_key", "is_forward", "started_us")
#: What ``exclusive_phases`` reads besides ``is_forward``.
TIMES = ("duration_us", "dynamo_us", "aot_us", "inductor_us", "codegen_us", "backward_us")
_CODE = ("pass", "rank", "co_name", "co_filename", "co_firstlineno")
_KINDS = {AOT_INDUCTOR: "aot_inductor", CAPTURE: "export"}
_EXPORTED = ("exported_program", "export")
_LOG = ["pass", "rank", "pid", "raw_file"]
_NO_COMPILE = pl.col("compile_key").is_null()


def compile_costs(tables: Tables) -> pl.DataFrame:
    """Table ``compile_costs``: one row per code object, rank and pass."""
    compiles = tables["compiles"].select(*_CODE, "pid", *ID, *TIMES, "user_file", "user_line")
    groups = grouped(with_nested(compiles).iter_rows(named=True), *_CODE)
    rows = []
    for code, mine in groups.items():
        parts = [exclusive_phases(row, row["nested_us"]) for row in mine]
        phases = {name: sum(part[name] for part in parts) for name in PHASES}
        starts = [row["started_us"] for row in mine if row["started_us"] is not None]
        located = next((row for row in mine if row["user_file"] is not None), mine[0])
        rows.append(
            {
                **dict(zip(_CODE, code, strict=True)),
                "user_file": located["user_file"],
                "user_line": located["user_line"],
                "compiles": sum(1 for row in mine if row["is_forward"] is not False),
                "total_s": sum(phases.values()),
                **phases,
                "first_started_us": min(starts, default=None),
            }
        )
    return from_rows("compile_costs", rows)


def exclusive_phases(compile_: Row, nested_us: float = 0.0) -> dict[str, float]:
    """Seconds of one compile by phase; they add up to its whole duration less ``nested_us``."""
    codegen = compile_["codegen_us"] or 0.0
    inductor = max(compile_["inductor_us"] or 0.0, codegen)
    aot = max(compile_["aot_us"] or 0.0, compile_["backward_us"] or 0.0, inductor)
    whole = max(compile_["duration_us"] or 0.0, compile_["dynamo_us"] or 0.0, aot)
    if compile_["is_forward"] is False:  # a lazy backward has no tracing of its own
        aot = whole
    parts = [whole - aot, aot - inductor, inductor - codegen, codegen]
    for number, micros in enumerate(parts):
        # A nested compile is called from the outermost phase that is long enough.
        taken = min(micros, nested_us)
        parts[number] -= taken
        nested_us -= taken
    return {name: micros / 1e6 for name, micros in zip(PHASES, parts, strict=True)}


def with_nested(compiles: pl.DataFrame) -> pl.DataFrame:
    """``compiles`` with ``nested_us``: time of the compiles that ran directly inside each one."""
    nested = [0.0] * compiles.height
    open_: list[tuple[int, list[Any], float]] = []
    known = compiles.with_row_index("number").drop_nulls(["started_us", "duration_us"])
    ordered = known.sort(*PROCESS, "started_us", maintain_order=True)
    columns = ordered.select("number", "started_us", "duration_us", *PROCESS)
    for number, start, duration, *process in columns.iter_rows():
        open_ = [span for span in open_ if span[1] == process and span[2] > start]
        around = [outer for outer, _, end in open_ if start + duration <= end]
        if around:
            nested[around[-1]] += duration
        open_.append((number, process, start + duration))
    return compiles.with_columns(nested_us=pl.Series(nested, dtype=pl.Float64))


def ahead_compiles(tables: Tables) -> pl.DataFrame:
    """Table ``ahead_compiles``: a row a compile, and one for exports whose time is not logged."""
    rows = []
    phases = tables["compile_phases"].filter(_NO_COMPILE).drop_nulls("started_us")
    graphs = tables["graphs"].filter(_NO_COMPILE, pl.col("kind").str.starts_with("aot_"))
    for _, mine in phases.group_by(_LOG, maintain_order=True):
        wholes = mine.filter(pl.col("name").is_in(list(_KINDS))).sort("raw_line")
        lines = graphs.filter(raw_file=mine["raw_file"][0])["raw_line"]
        edges = pairwise([*wholes["raw_line"], 2**62])
        for whole, (first, following) in zip(wholes.to_dicts(), edges, strict=True):
            seconds = whole["duration_us"] and whole["duration_us"] / 1e6
            end = whole["started_us"] + (whole["duration_us"] or float("inf"))
            row = {
                **{name: whole[name] for name in (*_LOG, "raw_line", "started_us")},
                "kind": _KINDS[whole["name"]],
                "seconds": seconds,
                "phases": int(mine["started_us"].is_between(whole["started_us"], end).sum()),
                "graphs": int(lines.is_between(first, following).sum()),
            }
            rows.append(row)
    captured = {row["raw_file"] for row in rows if row["kind"] == "export"}
    records = tables["log_records"].filter(pl.col("key").is_in(_EXPORTED))
    for known in records.select(_LOG).unique(maintain_order=True).to_dicts():
        if known["raw_file"] not in captured:
            rows.append({**known, "kind": "export"})
    return from_rows("ahead_compiles", rows)

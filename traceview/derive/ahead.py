"""Compiling ahead of time, by AOTInductor or torch.export: it has no compile id of torch.compile's.

Torch logs it as phases and graphs that belong to no compile, and an export that does not trace
bytecode as nothing but a record that a program was exported.
"""

from __future__ import annotations

from itertools import pairwise

import polars as pl

from traceview.tables import Tables, from_rows
from traceview.torchtext.phases import AOT_INDUCTOR, CAPTURE

_KINDS = {AOT_INDUCTOR: "aot_inductor", CAPTURE: "export"}
_EXPORTED = ("exported_program", "export")
_PROCESS = ["pass", "rank", "pid", "raw_file"]
_NO_COMPILE = pl.col("compile_key").is_null()


def ahead_compiles(tables: Tables) -> pl.DataFrame:
    """Table ``ahead_compiles``: a row a compile, and one for exports whose time is not logged."""
    rows = []
    phases = tables["compile_phases"].filter(_NO_COMPILE).drop_nulls("started_us")
    graphs = tables["graphs"].filter(_NO_COMPILE, pl.col("kind").str.starts_with("aot_"))
    for _, mine in phases.group_by(_PROCESS, maintain_order=True):
        wholes = mine.filter(pl.col("name").is_in(list(_KINDS))).sort("raw_line")
        lines = graphs.filter(raw_file=mine["raw_file"][0])["raw_line"]
        edges = pairwise([*wholes["raw_line"], 2**62])
        for whole, (first, following) in zip(wholes.to_dicts(), edges, strict=True):
            seconds = whole["duration_us"] and whole["duration_us"] / 1e6
            end = whole["started_us"] + (whole["duration_us"] or float("inf"))
            row = {
                **{name: whole[name] for name in (*_PROCESS, "raw_line", "started_us")},
                "kind": _KINDS[whole["name"]],
                "seconds": seconds,
                "phases": int(mine["started_us"].is_between(whole["started_us"], end).sum()),
                "graphs": int(lines.is_between(first, following).sum()),
            }
            rows.append(row)
    captured = {row["raw_file"] for row in rows if row["kind"] == "export"}
    records = tables["log_records"].filter(pl.col("key").is_in(_EXPORTED))
    for known in records.select(_PROCESS).unique(maintain_order=True).to_dicts():
        if known["raw_file"] not in captured:
            rows.append({**known, "kind": "export"})
    return from_rows("ahead_compiles", rows)

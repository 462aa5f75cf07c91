"""Table ``compile_costs``: compile seconds by phase.

torch's cumulative times are nested (dynamo contains AOTAutograd, which contains Inductor, which
contains code generation), so each phase here is the difference to the next one inside it. A compile
that runs inside another one's span is taken out of the outer one's total.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from traceview.tables import Tables, from_rows, grouped

Row = Mapping[str, Any]
PHASES = ("dynamo_s", "aot_s", "inductor_s", "codegen_s")
PROCESS = ("pass", "rank", "pid")  # hosts have the same pids
#: What identifies a compile: forward and backward share their key.
ID = ("compile_key", "is_forward", "started_us")
#: What ``exclusive_phases`` reads besides ``is_forward``.
TIMES = ("duration_us", "dynamo_us", "aot_us", "inductor_us", "codegen_us", "backward_us")
_CODE = ("pass", "rank", "co_name", "co_filename", "co_firstlineno")


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

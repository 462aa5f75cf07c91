"""Tables of facts that rules and the report's sections share (``traceview.derive.facts``)."""

from __future__ import annotations

import polars as pl

from traceview.schema.columns import COMPILE, Column, table

COMPILE_REGIONS = table(
    "compile_regions",
    "one compile and the region that it belongs to; compiles of no known region have no row",
    *COMPILE,
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "see regions"),
    Column("is_forward", pl.Boolean, "see compiles: forward and backward share a compile_key"),
    Column("started_us", pl.Float64, "see compiles"),
)

RECOMPILE_CAUSES = table(
    "recompile_causes",
    "one recompile, with the failed guard that decided it",
    *COMPILE,
    Column(
        "cause_id",
        pl.Int32,
        "recompiles of one pass with the same number have one cause: the same function, kind and source",
    ),
    Column("co_name", pl.String, "code object that was compiled again"),
    Column("co_filename", pl.String, "its file"),
    Column("co_firstlineno", pl.Int32, "its first line"),
    Column("function", pl.String, "co_name, or the function that code after a graph break is of"),
    Column(
        "is_wrapper", pl.Boolean, "the code object is torch's own function around the callable"
    ),
    Column("failed_compile_id", pl.String, "the cache entry whose guard failed"),
    Column("guard", pl.String, "the guard as torch wrote it"),
    Column(
        "kind",
        pl.String,
        "see recompiles; value also where an argument is a tensor in some calls and None in others",
    ),
    Column(
        "family",
        pl.String,
        "what changed: size, module_int, constant, resumed (a value handed across a graph break), identity, length, tensor (a property of one), state, backend, other",
    ),
    Column(
        "size_reason",
        pl.String,
        "of family size, why the compiled code did not serve the new size: zero_one, parameter, static, pinned, first_change",
    ),
    Column(
        "parameters",
        pl.List(pl.String),
        "of size_reason parameter, the parameters whose sizes differ",
    ),
    Column("source_name", pl.String, "what the guard reads: x, self.step, k"),
    Column("dim", pl.Int32, "dimension, for size and stride"),
    Column("old", pl.String, "value the guard expected"),
    Column("new", pl.String, "value it met; null where the log does not say"),
    Column("user_file", pl.String, "file that the guard (or its user stack) names"),
    Column("user_line", pl.Int32, "line there"),
    Column("user_code", pl.String, "source text that the guard quotes"),
    Column("origin", pl.String, "see recompiles"),
    raw=True,
)

TABLES = (COMPILE_REGIONS, RECOMPILE_CAUSES)

"""Tables of facts that rules and the report's sections share (``traceview.derive.facts``)."""

from __future__ import annotations

import polars as pl

from traceview.schema.columns import COMPILE, Column, table

_STANCE = Column("stance", pl.String, "compiled or eager")
_FILE = Column("file", pl.String, "user's own file; null: not known")
_LINE = Column("line", pl.Int32, "line there")

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
    Column("is_wrapper", pl.Boolean, "the code object is torch's own function around the callable"),
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

OUTSIDE_WORK = table(
    "outside_work",
    "what one line adds to a compiled step outside of compiled code, most expensive first within its kind",
    Column(
        "kind",
        pl.String,
        "loading (a DataLoader's batches), python (of the script's own), copies (from pageable memory, and the wait for them), operators (in no compiled graph)",
    ),
    Column(
        "what",
        pl.String,
        "of loading, the DataLoader's iterator; of operators, the optimizer whose step most of them are",
    ),
    _FILE,
    _LINE,
    Column(
        "ms",
        pl.Float64,
        "per step, on the step as timed; null: a line that runs while a batch is fetched, whose time is that of the line that asks for the batch",
    ),
    Column(
        "share",
        pl.Float64,
        "of all that the account of the step finds, 0 to 1: steadier than ms where the machine is busy. Python at the line that calls compiled code counts as no more than what the timed step leaves: a thread that waits for its next call looks the same",
    ),
)

STEP_SHARES = table(
    "step_shares",
    "where the time of a compiled step goes, as parts of it",
    Column(
        "compiled",
        pl.Float64,
        "of the host's time as profiled: in compiled callables and their backward, 0 to 1",
    ),
    Column(
        "waiting",
        pl.Float64,
        "of timed blocks: the step's thread wanted no processor, 0 to 1; null: not recorded",
    ),
    Column(
        "queued",
        pl.Float64,
        "of timed blocks: the step's thread was ready and had no processor, 0 to 1; null: not recorded",
    ),
)

SCRIPT_ENDS = table(
    "script_ends",
    "how one process of the script ended",
    Column("pid", pl.Int64, "process id"),
    Column("by_itself", pl.Boolean, "it came to its own end, without an error"),
    Column(
        "after_calls_s",
        pl.Float64,
        "from the end of the last compiled call to the end of the script; null: it did not come to its own end, or not every call was recorded",
    ),
)

READ_PLACES = table(
    "read_places",
    "one place of the user's own that reads values from a GPU in every step, where no graph breaks, most expensive first",
    _STANCE,
    Column("file", pl.String, "user's own file"),
    Column("lines", pl.List(pl.Int64), "the place's lines that read, as in host_reads"),
    Column("asks", pl.String, "what asks for the value on the first of them"),
    Column("scalars", pl.Float64, "single values a step"),
    Column("tensors", pl.Float64, "copies of tensors a step"),
    Column("waited_ms", pl.Float64, "host time a step in calls that wait, as profiled"),
    Column("without_ms", pl.Float64, "a step without the place's reads, on the step as timed"),
    Column("saved_ms", pl.Float64, "the step as timed less without_ms"),
)

OUTPUT_VERDICTS = table(
    "output_verdicts",
    "whether the outputs of one compiled callable agree with eager's",
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "the callable, as in regions"),
    Column(
        "outcome",
        pl.String,
        "agree, random (they do with eager's random numbers), rounding (they do with eager's roundings too), differ, not_compared",
    ),
    Column(
        "judged_run",
        pl.String,
        "run of output_checks to judge by: compiled, or fallback_random where random numbers may explain the difference",
    ),
    Column(
        "ladder_agrees",
        pl.Boolean,
        "every stage of the compiler agrees with eager's random numbers and roundings; null: not tried",
    ),
    Column("wrong_from", pl.String, "backend of the first stage that does not; null: none"),
    Column("wavering", pl.List(pl.String), "outputs in which eager does not agree with itself"),
)

TABLES = (
    COMPILE_REGIONS,
    RECOMPILE_CAUSES,
    OUTSIDE_WORK,
    STEP_SHARES,
    SCRIPT_ENDS,
    READ_PLACES,
    OUTPUT_VERDICTS,
)

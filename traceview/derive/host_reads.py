"""Tables ``host_reads`` and ``read_places``: lines that bring values from a GPU to the host.

A library does so too (an optimizer, a gradient scaler, a progress bar), at a line of the user's
that says nothing of it; so what the line itself asks for is read from the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import polars as pl

from traceview.derive.syntax import ReadSource, covers, syntax_tree
from traceview.tables import Tables, from_rows

_METHODS = frozenset({"item", "tolist", "cpu", "numpy"})
_FUNCTIONS = frozenset({"float", "int", "bool", "print", "str"})
_WINDOW = ("pass", "rank", "stance")
_SCALAR = "aten::_local_scalar_dense"
#: What ``.cpu()``, ``.tolist()`` and ``.numpy()`` end in; others decide on sizes (``nonzero``).
_COPY = "aten::copy_"
#: Reads in fewer steps than these are what there should be.
LEAST_READS = 0.5


def host_reads(tables: Tables, read_source: ReadSource) -> pl.DataFrame:
    """Table ``host_reads``; ``read_source`` gives a file's text, None where there is no copy."""
    rows: list[dict[str, Any]] = []
    for row in copies(tables, tables["step_counts"]).iter_rows(named=True):
        asks = next(reads(read_source(row["file"]) or "", row["line"]), None)
        rows.append({**row, "asks": asks})
    return from_rows("host_reads", rows)


def reads(source: str, line: int) -> Iterator[str]:
    """``.item()``, ``float()``, ``if``, …: what asks for a value at ``line``, outermost first."""
    tree = syntax_tree(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.expr | ast.stmt) and (found := _asks(node, line)):
            yield found


def _asks(node: ast.expr | ast.stmt, line: int) -> str | None:
    test = node.test if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert) else node
    if not covers(test, line):
        return None
    if test is not node:
        return type(node).__name__.lower().removesuffix("exp")
    if not isinstance(node, ast.Call):
        return "a format string" if isinstance(node, ast.FormattedValue) else None
    if isinstance(node.func, ast.Name):
        return f"{node.func.id}()" if node.func.id in _FUNCTIONS else None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else None
    if name == "to" and any(getattr(part, "value", None) == "cpu" for part in ast.walk(node)):
        return '.to("cpu")'
    return f".{name}()" if name in _METHODS else None


def copies(tables: Tables, counts: pl.DataFrame) -> pl.DataFrame:
    """Copies to the host outside of compiled code, by line, but of lines that copy both ways.

    ``counts``: table ``step_counts``.
    """
    copies = tables["kernels"].filter((pl.col("kind") == "memcpy") & pl.col("region").is_null())
    key = [*_WINDOW, "op_id"]
    lines = tables["op_sources"].select(*key, "file", "line").unique(key)
    placed = copies.rename({"cpu_op_id": "op_id"}).join(
        lines.drop_nulls(["file", "line"]), on=key, nulls_equal=True
    )
    line = [*_WINDOW, "file", "line"]
    down = pl.col("name").str.contains("DtoH")
    up = placed.filter(pl.col("name").str.contains("HtoD")).select(line).unique()
    steps = counts.select(*_WINDOW, "steps")
    waits = _with_waits(tables, placed.filter(down))
    waits = waits.join(up, on=line, how="anti", nulls_equal=True)
    waits = waits.join(steps, on=_WINDOW, nulls_equal=True)
    return waits.group_by(line, maintain_order=True).agg(
        scalars=(pl.col("cpu_op") == _SCALAR).sum() / pl.col("steps").first(),
        tensors=(pl.col("cpu_op") == _COPY).sum() / pl.col("steps").first(),
        waited_ms=pl.col("waited").sum() / 1e6 / pl.col("steps").first(),
    )


def _with_waits(tables: Tables, copies: pl.DataFrame) -> pl.DataFrame:
    """``copies`` with ``waited``: ns in the copy's own call, if it waits, and the wait after it."""
    key = [*_WINDOW, "op_id"]
    ops = tables["cpu_ops"].select(*key, until=pl.col("start_ns") + pl.col("duration_ns"))
    calls = tables["kernel_launches"].filter(pl.col("kind") == "sync")
    window = pl.struct(_WINDOW).hash().alias("window")  # null ranks are no keys of an as-of join
    joined = (
        copies.join(ops, on=key, how="left", nulls_equal=True)
        .with_columns(window)
        .sort("launch_start_ns")
        .join_asof(
            calls.select(window, begun="start_ns", after="duration_ns").sort("begun"),
            left_on="launch_start_ns",
            right_on="begun",
            by="window",
            strategy="forward",
            check_sortedness=False,
        )
    )
    own = pl.when(pl.col("name").str.contains("Pageable")).then("launch_duration_ns")
    after = pl.when(pl.col("begun") < pl.col("until")).then("after")
    return joined.with_columns(waited=own.fill_null(0) + after.fill_null(0))


def read_places(tables: Tables) -> pl.DataFrame | None:
    """Lines of ``host_reads`` joined with their place in ``read_replays``, most expensive first.

    Lines where a graph breaks are left out: what they cost is in the cost of the break. The
    replay's times are put in proportion to the step as timed. None where no step was replayed.
    """
    if not all(map(tables.has, ("host_reads", "read_replays", "graph_breaks"))):
        return None
    broken = tables["graph_breaks"].select("pass", file="user_file", line="user_line").unique()
    reads = (
        tables["host_reads"]
        .filter(pl.col("scalars") + pl.col("tensors") >= LEAST_READS, pl.col("asks") != "")
        .join(broken, on=["pass", "file", "line"], how="anti")
        .rename({"line": "read_line"})
    )
    timed = tables["speedups"].select("pass", "rank", timed_ms="compiled_ms")
    replays = (
        tables["read_replays"]
        .filter(pl.col("step_ms") > 0)
        .join(timed, on=["pass", "rank"], how="left", nulls_equal=True)
        .with_columns(timed_ms=pl.coalesce("timed_ms", "step_ms"))
    )
    joined = replays.join(reads, on=[*_WINDOW, "file"], nulls_equal=True).filter(
        pl.col("read_line").is_between("line", "last_line")
    )
    places = joined.group_by(*_WINDOW, "file", "line", "last_line", maintain_order=True).agg(
        pl.col("read_line").sort().cast(pl.Int64).alias("lines"),
        pl.col("asks").sort_by("read_line").first(),
        pl.col("scalars", "tensors", "waited_ms").sum(),
        pl.col("timed_ms", "step_ms", "without_ms").first(),
    )
    without = pl.col("without_ms") * pl.col("timed_ms") / pl.col("step_ms")
    return (
        places.drop("line", "last_line")
        .with_columns(saved_ms=pl.col("timed_ms") - without, without_ms=without)
        .drop("timed_ms", "step_ms")
        .sort("saved_ms", descending=True, maintain_order=True)
    )

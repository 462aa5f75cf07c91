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
from traceview.tables import Tables, empty, from_rows

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
        test = node.test if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert) else node
        if not isinstance(test, ast.expr | ast.stmt) or not covers(test, line):
            continue
        if test is not node:
            yield type(node).__name__.lower().removesuffix("exp")
        elif isinstance(node, ast.FormattedValue):
            yield "a format string"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in _FUNCTIONS:
                yield f"{node.func.id}()"
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else None
            moved = (getattr(part, "value", None) == "cpu" for part in ast.walk(node))
            if name == "to" and any(moved):
                yield '.to("cpu")'
            elif name in _METHODS:
                yield f".{name}()"


def copies(tables: Tables, counts: pl.DataFrame) -> pl.DataFrame:
    """Copies to the host outside of compiled code, by line, but of lines that copy both ways.

    ``counts``: table ``step_counts``. A copy waits in its own call, if its memory is pageable, and
    in a call after it.
    """
    copies = tables["kernels"].filter((pl.col("kind") == "memcpy") & pl.col("region").is_null())
    if copies.is_empty():
        return empty("host_reads").drop("asks")
    key = [*_WINDOW, "op_id"]
    lines = tables["op_sources"].select(*key, "file", "line").unique(key)
    placed = copies.rename({"cpu_op_id": "op_id"}).join(
        lines.drop_nulls(["file", "line"]), on=key, nulls_equal=True
    )
    line = [*_WINDOW, "file", "line"]
    up = placed.filter(pl.col("name").str.contains("HtoD")).select(line).unique()
    ops = tables["cpu_ops"].select(*key, until=pl.col("start_ns") + pl.col("duration_ns"))
    window = pl.struct(_WINDOW).hash().alias("window")  # null ranks are no keys of an as-of join
    calls = tables["kernel_launches"].filter(pl.col("kind") == "sync")
    calls = calls.select(window, begun="start_ns", after="duration_ns").sort("begun")
    down = placed.filter(pl.col("name").str.contains("DtoH"))
    down = down.join(ops, on=key, how="left", nulls_equal=True).with_columns(window)
    joined = down.sort("launch_start_ns").join_asof(
        calls,
        left_on="launch_start_ns",
        right_on="begun",
        by="window",
        strategy="forward",
        check_sortedness=False,
    )
    own = pl.when(pl.col("name").str.contains("Pageable")).then("launch_duration_ns").fill_null(0)
    after = pl.when(pl.col("begun") < pl.col("until")).then("after").fill_null(0)
    waits = joined.join(up, on=line, how="anti", nulls_equal=True)
    waits = waits.join(counts.select(*_WINDOW, "steps"), on=_WINDOW, nulls_equal=True)
    steps = pl.col("steps").first()
    return waits.group_by(line, maintain_order=True).agg(
        scalars=(pl.col("cpu_op") == _SCALAR).sum() / steps,
        tensors=(pl.col("cpu_op") == _COPY).sum() / steps,
        waited_ms=(own + after).sum() / 1e6 / steps,
    )


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

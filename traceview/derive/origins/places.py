"""Which of the user's lines an execution belongs to, and how that is known."""

from __future__ import annotations

import msgspec
import polars as pl

from traceview.derive.windows import Window
from traceview.tables import Tables


class _Frame(msgspec.Struct):
    file: str | None = None
    line: int | None = None


_STACK = msgspec.json.Decoder(list[_Frame])


def region_lines(tables: Tables, window: Window) -> dict[str, str]:
    """Region → ``file:line`` of the user's call of it: where its first call stands."""
    rows = window.own(tables["regions"])
    found = {}
    for region, text in rows.select("region_id", "first_call_stack").drop_nulls().iter_rows():
        try:
            stack = _STACK.decode(text)
        except (msgspec.DecodeError, UnicodeError):
            continue
        if stack and stack[-1].file and stack[-1].line:
            found[str(region)] = f"{stack[-1].file}:{stack[-1].line}"
    return found


def places(
    ops: pl.DataFrame, sources: pl.DataFrame | None, traced: pl.DataFrame | None
) -> pl.DataFrame:
    """``ops`` with ``place`` (``file:line``) and ``how``: line, forward, operator; null: not known.

    ``sources`` are the lines that a lines window saw; ``traced`` gives those of the graph that was
    traced from the same call, for outermost operators. A backward has its forward's place.
    """
    none = pl.Series([None], dtype=pl.String).extend_constant(None, max(0, ops.height - 1))
    seen = none if sources is None else _by_row(ops, sources.filter(how="line").select(
        "row", pl.format("{}:{}", "file", "line").alias("place")
    ))  # fmt: skip
    told = none if traced is None else _by_row(ops, traced)
    top, forward = ops["top_row"], ops["forward_row"]
    own = _first(seen, seen.gather(top))
    graph = told.gather(top)
    is_backward = pl.col("forward_row").is_not_null()
    by = ops.select(
        own=pl.when(is_backward).then(own.gather(forward)).otherwise(own),
        graph=pl.when(is_backward).then(graph.gather(forward)).otherwise(graph),
        how=pl.when(is_backward).then(pl.lit("forward")).otherwise(pl.lit("line")),
    )
    return ops.with_columns(
        place=_first(by["own"], by["graph"]),
        how=by.select(
            pl.when(pl.col("own").is_not_null()).then("how")
            .when(pl.col("graph").is_not_null()).then(pl.lit("operator"))
        ).to_series(),
    )  # fmt: skip


def _by_row(ops: pl.DataFrame, known: pl.DataFrame) -> pl.Series:
    return ops.select("row").join(known, on="row", how="left", maintain_order="left")["place"]


def _first(one: pl.Series, other: pl.Series) -> pl.Series:
    return pl.select(pl.coalesce(one, other)).to_series()

"""Table ``ddp_buckets``: what DDPOptimizer cut out of a graph, read from the texts that it logs.

A parameter is known by its name, as Dynamo makes it of where the parameter was found:
``l_self_modules_up_parameters_weight_: "f32[512, 256]"``.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl

from traceview.tables import Tables, from_rows
from traceview.torchtext.fx import read_graph, read_nodes, signature


def ddp_buckets(tables: Tables) -> pl.DataFrame:
    """One row a piece, numbered in the order in which a forward runs them."""
    rows: list[dict[str, Any]] = []
    met: Counter[tuple[str | None, int | None]] = Counter()
    children = tables["graphs"].filter(pl.col("kind") == "ddp_split_child")
    head = ("pass", "rank", "compile_key", "compile_id", "attempt", "raw_file", "raw_line")
    for row in children.iter_rows(named=True):
        attempt, text = (row["compile_key"], row["attempt"]), row["text"] or ""
        parameters = [node for node in read_graph(text).inputs if "_parameters_" in node.name]
        sizes = [node.bytes for node in parameters if node.bytes is not None]
        has_signature = signature(text) is not None
        whole = has_signature and len(sizes) == len(parameters)
        rows.append(
            {
                **{key: row[key] for key in head},
                "bucket": met[attempt],
                "op_count": len(read_nodes(text)),
                "parameters": len(parameters) if has_signature else None,
                "parameter_bytes": sum(sizes) if whole else None,
            }
        )
        met[attempt] += 1
    return from_rows("ddp_buckets", rows)

"""Table ``ddp_buckets``: what DDPOptimizer cut out of a graph, read from the texts that it logs.

A parameter is known by its name, as Dynamo makes it of where the parameter was found:
``l_self_modules_up_parameters_weight_: "f32[512, 256]"``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl

from traceview.derive.limits.dtypes import dtype_of, size_of
from traceview.tables import Tables, from_rows

_SIGNATURE = re.compile(r"^\s*def forward\(self,?(?P<arguments>.*)\):", re.MULTILINE)
_PARAMETER = re.compile(r'\w*_parameters_\w*: "(?P<dtype>\w+)\[(?P<shape>[\d, ]*)\]')
_OPERATION = re.compile(r"^\s+\w+(?:: \"[^\"\n]*\")? = ", re.MULTILINE)
#: Graphs abbreviate floats like this; the other dtypes as Triton does.
_SHORT = {"f64": "float64", "f32": "float32", "f16": "float16"}


def ddp_buckets(tables: Tables) -> pl.DataFrame:
    """One row a piece, numbered in the order in which a forward runs them."""
    return from_rows("ddp_buckets", _rows(tables))


def _rows(tables: Tables) -> Iterator[dict[str, Any]]:
    met: Counter[tuple[str | None, int | None]] = Counter()
    children = tables["graphs"].filter(pl.col("kind") == "ddp_split_child")
    for row in children.iter_rows(named=True):
        attempt = row["compile_key"], row["attempt"]
        yield {
            **{key: row[key] for key in ("pass", "rank", "compile_key", "compile_id", "attempt")},
            "bucket": met[attempt],
            "op_count": len(_OPERATION.findall(row["text"] or "")),
            **_parameters(row["text"] or ""),
            **{key: row[key] for key in ("raw_file", "raw_line")},
        }
        met[attempt] += 1


def _parameters(text: str) -> dict[str, int | None]:
    """How many parameters a piece takes, and their bytes; null where a size is not told."""
    signature = _SIGNATURE.search(text)
    found = list(_PARAMETER.finditer(signature["arguments"])) if signature else []
    sizes = [_bytes(one["dtype"], one["shape"]) for one in found]
    known = [size for size in sizes if size is not None]
    whole = signature is not None and len(known) == len(sizes)
    return {
        "parameters": len(found) if signature else None,
        "parameter_bytes": sum(known) if whole else None,
    }


def _bytes(short: str, shape: str) -> int | None:
    dtype = dtype_of(_SHORT.get(short, short))
    if dtype is None:
        return None
    return size_of(dtype) * math.prod(int(size) for size in shape.split(",") if size.strip())

"""Table ``shape_gains``: what other ways to do the step's heaviest library work save.

Both ways were timed on the step's own shapes after its end. A dtype or a precision is a choice for
all of a model's products, so all shapes of a kind count together.
"""

from __future__ import annotations

import polars as pl

from traceview.parse.kineto.categories import operator_category
from traceview.tables import Tables, from_rows

_AS_IT_IS = "as it is"


def shape_gains(tables: Tables) -> pl.DataFrame:
    """The table; empty where nothing was timed."""
    trials = tables["shape_trials"]
    names = trials["op"].unique().drop_nulls().to_list()
    kinds = {name: operator_category(name) for name in names}
    key = ["pass", "rank", "op", "shape", "dtype", "count", "clock"]
    base = trials.filter(way=_AS_IT_IS).select(*key, base="value")
    both = (
        trials.filter(pl.col("way") != _AS_IT_IS)
        .join(base, on=key, nulls_equal=True)
        .with_columns(kind=pl.col("op").replace_strict(kinds, default=None, return_dtype=pl.String))
    )
    times = pl.col("count") / 1e3
    found = both.group_by("pass", "rank", "kind", "way", "dtype", "clock", maintain_order=True).agg(
        pl.len().cast(pl.Int32).alias("shapes"),
        (pl.col("base") * times).sum().alias("base_ms"),
        (pl.col("value") * times).sum().alias("ms"),
    )
    rows = found.with_columns(share=1 - pl.col("ms") / pl.col("base_ms")).to_dicts()
    return from_rows("shape_gains", rows)

"""Several processes in one trace (a merged one): the events of one of them are kept.

It is the process with most marked steps or, without marks, with most events: what the others did is
no part of its step, and two processes' correlation ids are the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from traceview.parse.kineto.nesting import is_step


def main_process(what: pl.Series, names: Sequence[str | None], pids: Sequence[Any]) -> Any:  # noqa: ANN401
    """The process that the trace tells of; None where no event names one.

    ``what``: of every host event the number of its name and process, in ``names`` and ``pids``.
    """
    known = set(pids) - {None}
    if len(known) < 2:
        return next(iter(known), None)
    times = dict(what.value_counts().iter_rows())
    weights = dict.fromkeys(known, (0, 0))
    for number, (name, pid) in enumerate(zip(names, pids, strict=True)):
        if pid is not None:
            count, (steps, events) = times.get(number, 0), weights[pid]
            marks = count if is_step(name or "") else 0
            weights[pid] = (steps + marks, events + count)
    return max(weights, key=lambda pid: (weights[pid], str(pid)))


def without(
    host: pl.DataFrame, device: pl.DataFrame, others: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both less what is of other processes; ``others`` says so of every host event.

    Device events do not tell their process. One is of the process whose call has its correlation;
    where both have one, of the call nearest in time.
    """
    calls = host.select("correlation", others.alias("other"), called="start_ns")
    rows = device.select("correlation", "start_ns").with_row_index("row")
    nearest = (
        rows.join(calls.drop_nulls("correlation"), on="correlation")
        .sort((pl.col("start_ns") - pl.col("called")).abs(), "row")
        .unique("row", keep="first")
    )
    theirs = rows["row"].is_in(nearest.filter("other")["row"].implode())
    return host.filter(~others), device.filter(~theirs)

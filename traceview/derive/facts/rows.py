"""Which pass findings and sections are about, the rows of its tables, and what its steps take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import polars as pl

from traceview.derive.windows import GENERATED
from traceview.tables import Tables, having

#: Rows are shared by everything that reads the table: never change one.
Row = Mapping[str, Any]
R = TypeVar("R", bound=Row)

#: The measured pass first; ``logs`` are logs that were opened without a measurement, and of a job
#: the start that matters most (the others are ``logs.2``, …).
_PASSES = ("cold", "logs", "baseline", "warm")
#: Tables that every pass has some of.
_TELLING = ("runs", "speedups", "job_ranks", "compiles", "graph_breaks", "recompiles")


def frame(tables: Tables, name: str, /, **equal: object) -> pl.DataFrame:
    """Table ``name`` of one pass, the measured one where it has rows, filtered on columns."""
    found = tables.once(_measured, name)
    if None in equal.values():  # nothing equals null
        return found.clear()
    return having(found, **equal)


def rows(tables: Tables, name: str, /, **equal: object) -> list[Row]:
    """``frame`` as mappings, in the table's own order, every rank."""
    return list(tables.once(_rows, name, *equal.items()))


def called_in(ops: pl.DataFrame, begin: str) -> pl.DataFrame:
    """Of rows of ``cpu_ops`` those that one whose name begins so calls itself."""
    within = ops.filter(pl.col("name").str.starts_with(begin)).select(parent_id="op_id")
    return ops.join(within.unique(), on="parent_id", how="semi")


def ran_generated(tables: Tables) -> pl.DataFrame | None:
    """Rows of ``matched_kernels`` that Inductor wrote, of every pass and rank; None: no profile."""
    found = tables["matched_kernels"]
    return None if found.is_empty() else found.filter(GENERATED, stance="compiled")


def measured_pass(tables: Tables) -> str | None:
    """The pass that findings and sections are about; None where no table names a known one."""
    recorded = filter(tables.has, _TELLING)
    present = {name for table in recorded for name in tables[table]["pass"].unique()}
    return next((known for known in _PASSES if known in present), None)


def _measured(tables: Tables, name: str) -> pl.DataFrame:
    table, chosen = tables[name], tables.once(measured_pass)
    if chosen is None:
        present = set(table["pass"].unique())
        chosen = next((known for known in _PASSES if known in present), None)
    return table if chosen is None else having(table, **{"pass": chosen})


def _rows(tables: Tables, name: str, *equal: tuple[str, object]) -> Sequence[Row]:
    return frame(tables, name, **dict(equal)).to_dicts()


def first_rank(found: Iterable[R]) -> list[R]:
    """Only the lowest rank's rows: what a cost is counted on, since ranks do the same work."""
    every = list(found)
    lowest = min((row["rank"] for row in every if row["rank"] is not None), default=None)
    return every if lowest is None else [row for row in every if row["rank"] == lowest]


def first(tables: Tables, name: str, /, **equal: object) -> Row | None:
    """The first row of the first rank, or None."""
    found = first_rank(rows(tables, name, **equal))
    return found[0] if found else None


def measured(tables: Tables) -> Row | None:
    """The row of ``speedups`` that the verdict rests on, or None."""
    return first(tables, "speedups")


def outcome(tables: Tables) -> str | None:
    """helped, neutral, hurt, …, or None where nothing was measured."""
    found = measured(tables)
    return found["outcome"] if found else None


def is_timed(tables: Tables) -> bool:
    """Whether a compiled step was timed against an eager one."""
    return outcome(tables) in ("helped", "neutral", "hurt")


def ratio(tables: Tables) -> float | None:
    """Compiled over eager time of a step: above 1, compiling hurts."""
    found = measured(tables)
    speedup = found["speedup"] if found else None
    return 1 / speedup if speedup else None


def timed_scale(timed: float | None, profiled: float | None) -> float | None:
    """What a part of a step takes as timed for each ms of it as profiled; None: not known.

    At most 1: the profiler makes no step faster.
    """
    return min(1.0, timed / profiled) if timed and profiled else None


def timed_scales(tables: Tables) -> dict[tuple[str, int | None], float | None]:
    """``timed_scale`` of compiled steps by pass and rank."""
    return {
        (row["pass"], row["rank"]): timed_scale(row["timed_step_ms"], row["step_ms"])
        for row in tables["step_counts"].filter(stance="compiled").iter_rows(named=True)
    }


def step_ms(tables: Tables, stance: str) -> float | None:
    """Median step of a stance from the timed blocks, else as profiled."""
    found = measured(tables)
    value: float | None = found[f"{stance}_ms"] if found else None
    if value is None:
        counts = first(tables, "step_counts", stance=stance)
        value = counts["step_ms"] if counts else None
    return value

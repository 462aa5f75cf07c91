"""Every recorded run: the categories and the unexplained rest are the step; the rest is small."""

import json
from pathlib import Path

import polars as pl
import pytest

from traceview.derive.windows import windows

RUNS = Path(__file__).resolve().parents[3] / "fixtures" / "runs"
INDEX = json.loads((RUNS / "INDEX.json").read_text())
#: Those with a label are of other versions of torch, some on emulated machines.
RECORDED = sorted(name for name, line in INDEX.items() if "label" not in line)
#: Part of the timed step that may stay unexplained.
CLOSES = 0.02
#: Where the speedup is not known to this factor, steps differ among each other, and a profiled one
#: is not the timed one.
WIDE = 1.3


@pytest.mark.parametrize("name", RECORDED)
def test_it_closes(name, tables_of):
    tables = tables_of(name)
    rows_add_up_to_the_timed_step(tables)
    rows_as_profiled_add_up_to_the_profiled_step(tables)
    host_time_is_that_of_the_marked_steps(tables)
    the_unexplained_rest_is_within_two_percent(tables)


def accounts(tables):
    """(stance, timed step, rows) of the first rank's windows that have a timed step."""
    counts = tables["step_counts"].filter(pl.col("rank").fill_null(0) == 0, pass_name())
    for row in counts.drop_nulls("timed_step_ms").iter_rows(named=True):
        mine = pl.col("rank").eq_missing(pl.lit(row["rank"], dtype=pl.Int32)) & pass_name()
        rows = tables["accounting"].filter(mine, stance=row["stance"])
        yield row["stance"], row["timed_step_ms"], rows


def pass_name():
    return pl.col("pass") == "cold"


def marks_are_cheap(tables, stance):
    """Whether the collector's marks cost little: the dear ones took half of a short step."""
    ops = tables["cpu_ops"].filter(stance=stance)
    return bool(ops["name"].str.starts_with("traceview call").any())


def rows_add_up_to_the_timed_step(tables):
    for _, timed, rows in accounts(tables):
        assert rows["ms"].sum() == pytest.approx(timed)
        found = rows.filter(~pl.col("kind").is_in(["unexplained", "machine_speed"]))
        assert found["ms"].min() >= 0


def rows_as_profiled_add_up_to_the_profiled_step(tables):
    for row in tables["step_counts"].drop_nulls("step_ms").iter_rows(named=True):
        rows = tables["accounting"].filter(
            pl.col("rank").eq_missing(pl.lit(row["rank"], dtype=pl.Int32)),
            stance=row["stance"], **{"pass": row["pass"]},
        )  # fmt: skip
        assert rows["profiled_ms"].sum() == pytest.approx(row["step_ms"], abs=1e-5)


def host_time_is_that_of_the_marked_steps(tables):
    for window in tables.once(windows):
        if window.on_device or window.lost or not window.steps:
            continue
        rows = window.own(tables["accounting"])
        own = window.ops.filter(pl.col("name").str.starts_with("traceview own"))[
            "duration_ns"
        ].sum()
        whole = window.marks["duration_ns"].sum() / window.steps / 1e6
        found = rows["profiled_ms"].sum()
        # The collector ends a step's mark after its own: in less than 0.1 ms.
        assert whole - own / window.steps / 1e6 - 0.1 <= found <= whole + 1e-5


def lock_is_held(tables):
    """Whether another thread holds Python's lock: a step waits for it by chance, once or never."""
    return tables["busy_threads"].filter(pl.col("lock_wait_ms") > pl.col("interval_ms") / 2).height


def is_noisy(tables):
    ratios = tables["speedups"]["speedup_high"] / tables["speedups"]["speedup_low"]
    return any(ratio > WIDE for ratio in ratios.drop_nulls())


def copies_are_late(tables, stance, rest):
    """Whether the host, slowed by the profiler, began copies late that are hidden otherwise."""
    (row,) = tables["step_counts"].filter(stance=stance).to_dicts()
    longer = row["step_ms"] - row["timed_step_ms"]
    return bool(row["exposed_copies_ms"]) and 0 < -rest < longer


def the_unexplained_rest_is_within_two_percent(tables):
    dear = []
    for stance, timed, rows in accounts(tables):
        (rest,) = rows.filter(category="unexplained")["ms"]
        open_ = abs(rest) > CLOSES * timed
        if open_ and (is_noisy(tables) or not marks_are_cheap(tables, stance)):
            dear.append(f"{stance} {rest / timed:+.0%}")
        else:
            late = open_ and copies_are_late(tables, stance, rest)
            assert not open_ or late or lock_is_held(tables), stance
    if dear:
        pytest.xfail(f"{', '.join(dear)}: steps differ, or the collector's marks were expensive")

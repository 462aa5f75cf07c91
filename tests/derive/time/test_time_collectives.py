"""Collectives that wait for another rank, which the profiler makes late."""

import polars as pl
import pytest
from step_tables import HEAD, call, kernel, window

from traceview.derive.profile import profile_tables
from traceview.derive.time.profiler_cost import waits_ns
from traceview.derive.windows import windows
from traceview.tables import from_rows

TALK = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def two_ranks(mine, others, *, name=TALK):
    """A step of 1000 µs of rank 0 whose collectives take ``mine`` µs each, of rank 1 ``others``."""
    starts = [sum(mine[:n]) + 100 for n in range(len(mine))]
    talks = [
        kernel(start, took, 20 + n, n, TALK, "communication")
        for n, (start, took) in enumerate(zip(starts, mine, strict=True))
    ]
    calls = [call("cudaLaunchKernel", 20 + n, 1, correlation=n) for n in range(len(mine))]
    tables = window((), calls, [kernel(50, 50, 10, 99), *talks])
    for table in ("cpu_ops", "kernels", "kernel_launches"):
        tables.put(table, tables[table].with_columns(rank=pl.lit(0, dtype=pl.Int32)))
    rows = [
        {**HEAD, **kernel(100 * n, took, 0, n, name, "communication"), "rank": 1}
        for n, took in enumerate(others)
    ]
    tables.put("kernels", pl.concat([tables["kernels"], from_rows("kernels", rows)]))
    return tables


def waits(tables):
    return waits_ns(tables, windows(tables)[0]) / 1000


def test_a_wait_is_what_the_shortest_of_all_ranks_does_not_need():
    assert waits(two_ranks([300, 400], [20, 500])) == 280
    assert waits(two_ranks([300, 400], [20])) == 280
    assert waits(two_ranks([300, 400], [])) == 0
    assert waits(two_ranks([300], [20], name="ncclDevKernel_AllGather_RING_LL")) == 0


@pytest.mark.parametrize(
    ("timed_ms", "communication_ms"), [(0.8, 0.65), (0.2, 0.15), (1.0, 0.85), (1.1, 0.85)]
)
def test_waits_beyond_the_timed_step_are_the_profilers(timed_ms, communication_ms):
    """Collectives take 850 µs, 700 of them a wait, and the window 1000 µs."""
    made = profile_tables(two_ranks([850], [150]), {"compiled": timed_ms})
    rows = made["accounting"].filter(rank=0)
    (found,) = rows.filter(category="communication").to_dicts()
    assert found["profiled_ms"] == pytest.approx(0.85)
    assert found["ms"] == pytest.approx(communication_ms, abs=0.013)  # an event's cost
    (detail,) = made["account_details"].filter(rank=0, category="communication").to_dicts()
    assert (detail["ms"], detail["profiled_ms"]) == (found["ms"], found["profiled_ms"])
    assert rows["ms"].sum() == pytest.approx(timed_ms)
    told = made["notes"]["what"].to_list() if "notes" in made else []
    assert any("waits in collectives" in what for what in told) == (communication_ms < 0.85)


@pytest.mark.parametrize("stance", ["eager", "compiled"])
@pytest.mark.parametrize("run", ["h200x2-bad-dd_ddp_splits", "h200x2-bad-dd_rank_skew"])
def test_the_steps_of_two_gpus_close(tables_of, run, stance):
    tables = tables_of(run)
    counts = tables["step_counts"].filter(rank=0, stance=stance).row(0, named=True)
    assert abs(counts["unexplained_ms"]) <= 0.02 * counts["timed_step_ms"]
    talk = counts["exposed_communication_ms"]
    rows = tables["accounting"].filter(rank=0, stance=stance, category="communication")
    assert rows["profiled_ms"][0] == pytest.approx(talk)
    assert rows["ms"][0] <= counts["timed_step_ms"]

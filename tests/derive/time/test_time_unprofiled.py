"""A window played again without its events' cost: who decides how long a step takes."""

import polars as pl
import pytest
from step_tables import call, kernel, op, step, window

from traceview.derive.time.profiler_cost import MOST_EVENT_US, event_cost


def launched(count, every, duration, sync_after=None):
    """Kernels of ``duration`` µs, each launched by an operator that begins ``every`` µs after the
    one before; a synchronisation follows launch ``sync_after``."""
    ops, calls, kernels, free = [], [], [], 0
    at = 4
    for n in range(count):
        ops.append(op("aten::mul", at, 5))
        calls.append(call("cudaLaunchKernel", at + 2, 2, correlation=n, kernels=1))
        start = max(free, at + 2 + 6)
        kernels.append(kernel(start, duration, at + 2, n))
        free = start + duration
        at += every
        if n == sync_after:
            back = max(at, free) + 3
            calls.append(call("cudaStreamSynchronize", at, back - at, "sync"))
            at = back + 4
    return window(ops, calls, kernels, end=at)


def test_a_host_bound_step_gets_shorter_by_what_its_events_cost():
    """20 operators with a launch each every 30 µs: 40 events, of which each cost 5 µs."""
    rows, counts, _ = step(launched(20, 30, 3), 20 * 30 / 1000 - 40 * 5 / 1000)
    assert counts["event_cost_us"] == pytest.approx(5.0, rel=0.03)
    assert rows["gemm"]["ms"] == pytest.approx(0.060)
    assert counts["unexplained_ms"] == pytest.approx(0, abs=1e-4)


def test_a_device_bound_step_does_not_get_shorter():
    rows, counts, _ = step(launched(20, 12, 40), 0.6)
    assert counts["event_cost_us"] is None
    assert rows["gemm"]["ms"] == pytest.approx(0.8)
    assert counts["unexplained_ms"] == pytest.approx(-0.2, abs=0.02)


def test_a_host_that_would_run_ahead_leaves_the_device_its_own_time():
    """Profiled, the host is late for every kernel of 20 µs; without the profiler it is not."""
    rows, counts, _ = step(launched(20, 30, 20), 0.410)
    idle = [row for row in rows.values() if row["kind"] == "idle"]
    assert sum(row["profiled_ms"] for row in idle) == pytest.approx(0.204)
    # All that is left between the kernels is the way from one to the next.
    assert sum(row["ms"] for row in idle) == pytest.approx(20 * 0.0008, abs=0.0005)
    assert counts["unexplained_ms"] == pytest.approx(-0.006, abs=0.0005)


def replayed(count, duration, gap):
    """One launch whose ``count`` kernels stand ``gap`` µs apart."""
    kernels = [kernel(12 + n * (duration + gap), duration, 6, 0) for n in range(count)]
    calls = [call("cudaGraphLaunch", 6, 3, correlation=0, kernels=count)]
    return window([op("aten::mul", 4, 6)], calls, kernels, end=12 + count * (duration + gap))


@pytest.mark.parametrize(("timed", "left"), [(0.118, 0.0), (0.100, -0.016)])
def test_the_gaps_of_a_graph_lose_what_the_step_lacks_but_no_more_than_half(timed, left):
    """20 kernels of 5 µs, 1 µs apart, and the way to the next replay."""
    rows, counts, _ = step(replayed(20, 5, 1), timed)
    assert rows["gemm"]["ms"] == pytest.approx(0.1)
    assert rows["idle_inside_graph"]["profiled_ms"] == pytest.approx(0.019)
    assert 0.0095 - 1e-6 <= rows["idle_inside_graph"]["ms"] < 0.019
    assert counts["unexplained_ms"] == pytest.approx(left, abs=0.0005)


def test_a_synchronisation_keeps_host_and_device_apart_however_fast_the_host_is():
    """The host cannot launch before the device is drained: that gap stays, and is the sync's."""
    rows, _, details = step(launched(10, 30, 60, sync_after=9), 0.6)
    assert rows["idle_sync"]["ms"] == pytest.approx(0.013, abs=0.004)
    assert {row["what"] for row in details if row["category"] == "idle_sync"} == {
        "cudaStreamSynchronize"
    }


def test_rows_and_the_unexplained_are_the_timed_step_whatever_it_is():
    tables = launched(20, 30, 3, sync_after=10)
    for timed in (0.1, 0.35, 0.5, 2.0):
        rows, counts, _ = step(tables, timed)
        assert sum(row["ms"] for row in rows.values()) == pytest.approx(timed)
        assert rows["unexplained"]["ms"] == pytest.approx(counts["unexplained_ms"])


def test_the_least_cost_that_is_near_enough_is_taken():
    def flat(us):
        return max(100.0, 1000.0 - 300 * us)

    found = event_cost(flat, (400.0, 400.0))
    assert found == (pytest.approx(2.0, abs=0.01), 400.0, pytest.approx(0, abs=0.05))
    found = event_cost(flat, (50.0, 50.0))
    assert found == (pytest.approx(3.0, abs=0.02), 50.0, pytest.approx(-50, abs=0.1))


@pytest.mark.parametrize(
    ("low", "high", "us", "timed", "left"),
    [
        (300.0, 500.0, 2.0, 400.0, 0.0),  # the middle
        (900.0, 1500.0, None, 1000.0, 0.0),  # the longest that the window can be
        (20.0, 120.0, 3.0, 100.0, 0.0),  # the shortest
        (1200.0, 1500.0, None, 1200.0, 200.0),  # not even the shortest step is as short
        (20.0, 60.0, 3.0, 60.0, -40.0),
    ],
)
def test_a_step_that_is_known_by_its_limits_is_taken_where_the_window_leads(
    low, high, us, timed, left
):
    found = event_cost(lambda us: max(100.0, 1000.0 - 300 * us), (low, high))
    assert found.us == (None if us is None else pytest.approx(us, abs=0.02))
    assert (found.timed, found.left) == (pytest.approx(timed), pytest.approx(left, abs=0.1))


@pytest.mark.parametrize("timed", [1000.0, 1500.0])
def test_a_window_that_is_not_longer_says_nothing_of_the_cost(timed):
    assert event_cost(lambda us: 1000.0 - us, (timed, timed)) == (None, timed, timed - 1000.0)


def test_a_cost_beyond_belief_is_not_found():
    found = event_cost(lambda us: 1000.0 - 10 * us, (100.0, 100.0))
    assert found.us == pytest.approx(MOST_EVENT_US, abs=0.02)
    assert found.left == pytest.approx(100 - (1000 - 10 * MOST_EVENT_US), rel=1e-3)


def test_details_of_a_category_add_up_to_it():
    rows, _, details = step(launched(20, 30, 3, sync_after=10), 0.45)
    found = pl.DataFrame(details).group_by("category").agg(pl.col("ms").sum())
    assert dict(found.iter_rows()) == {
        name: pytest.approx(row["ms"]) for name, row in rows.items() if name != "unexplained"
    }


def test_a_slow_machine_makes_every_event_dearer():
    """The window's neighbours took twice the usual time: so may each event, and no longer."""
    found = event_cost(lambda us: 1000.0 - 10 * us, (400.0, 800.0))
    assert found.us == pytest.approx(2 * MOST_EVENT_US, abs=0.03)
    assert found.timed == pytest.approx(1000 - 20 * MOST_EVENT_US)

"""Windows that are not as they should be: what can be said is said, the rest is null and noted."""

import polars as pl
import pytest
from step_tables import HEAD, call, kernel, mark, op, step, us, window

from traceview.derive import derive
from traceview.derive.profile import profile_tables
from traceview.derive.windows import windows
from traceview.tables import Tables, from_rows


def notes(tables):
    return [(row["what"], row["why"]) for row in profile_tables(tables)["notes"].to_dicts()]


def test_a_device_clock_that_is_behind_is_moved():
    """Every kernel seems to start 40 µs before its launch."""
    right = [kernel(100 + 50 * n, 20, 90 + 50 * n, n) for n in range(10)]
    early = [{**row, "start_ns": row["start_ns"] - 50_000} for row in right]
    assert us(window((), (), early))["gemm"] == us(window((), (), right))["gemm"] == 200
    moved = windows(window((), (), early))[0].kernels
    assert (moved["start_ns"] >= moved["launch_start_ns"]).all()
    what, why = notes(window((), (), early))[0]
    assert what.startswith("times of the device")
    assert why == "moved by 40.0 µs: kernels start before their launches"


def test_a_device_clock_that_is_ahead_is_moved_back():
    """Every kernel seems to end 5 ms after the call that waited for it."""
    right = [kernel(100 + 200 * n, 20, 95 + 200 * n, n) for n in range(4)]
    late = [{**row, "start_ns": row["start_ns"] + 5_000_000} for row in right]
    waits = [call("cudaDeviceSynchronize", 105 + 200 * n, 20, "sync") for n in range(4)]
    moved = windows(window((), waits, late))[0]
    starts = pl.Series([row["start_ns"] for row in right])
    assert (moved.kernels["start_ns"] - starts).is_between(0, 10_000).all()  # but for a latency
    assert moved.notes[0][1] == "moved by -4995.0 µs: kernels end after calls that waited for them"
    # One late kernel is no clock: another stream, a call for another device.
    assert windows(window((), waits, [*right[:3], late[3]]))[0].notes == ()


def test_one_kernel_before_its_launch_is_damage_and_moves_nothing():
    kernels = [kernel(100 + 5 * n, 4, 90 + 5 * n, n) for n in range(150)]
    kernels[3]["launch_start_ns"] += 500_000
    found = windows(window((), (), kernels))[0]
    assert found.notes == ()
    assert us(window((), (), kernels))["gemm"] == 600


def test_kernels_of_centuries_are_left_out():
    kernels = [kernel(100, 50, 90, 1), kernel(300, 10**13, 290, 2)]
    assert us(window((), (), kernels))["gemm"] == 50
    what, why = notes(window((), (), kernels))[0]
    assert what.startswith("1 of 2 kernels")
    assert "longer than the whole window" in why


def test_lost_correlation_ids_leave_the_cause_open():
    kernels = [kernel(100, 50, None), kernel(300, 50, None)]
    found = us(window([mark("traceview gc 2", 160, 120)], (), kernels))
    assert found == {"gemm": 100, "idle_unlinked": 250, "idle_python": 650}
    rows, counts, _ = step(window((), (), kernels), 0.8)
    assert counts["event_cost_us"] is None
    assert rows["gemm"]["ms"] == pytest.approx(0.1)


def test_causes_that_nothing_tells_are_not_zero():
    kernels = [kernel(100, 50, None), kernel(300, 50, None)]
    counts = step(window((), (), kernels))[1]
    assert (counts["launches"], counts["graph_launches"], counts["syncs"]) == (None,) * 3
    what, why = notes(window((), (), kernels))[0]
    assert what.startswith("the launches of 2 of 2 kernels")
    assert why == "not recorded: why the device idled before them is not known"


def test_idle_time_without_a_cause_is_not_said_to_be_no_launchs():
    lost = derive(window((), (), [kernel(100, 50, None), kernel(300, 50, None)]), {})
    assert lost["step_limits"]["idle_ms"][0] > 0
    assert lost["step_limits"]["launch_idle_ms"].to_list() == [None]
    whole = derive(window((), (), [kernel(100, 50, 99, 1), kernel(300, 50, 299, 2)]), {})
    assert whole["step_limits"]["launch_idle_ms"][0] >= 0


def test_kernels_that_take_no_time_are_no_work():
    rows, counts, _ = step(window((), (), [kernel(100, 0, 90, 1)]))
    assert {row["kind"] for row in rows.values()} == {"idle"}
    assert counts["device_busy_ms"] == 0


@pytest.mark.parametrize("known", ["calls", "clock"])
def test_a_device_without_events_is_not_accounted_as_a_host(known):
    """CUPTI was not allowed, or its events are lost: operators only launch there."""
    ops = [op("aten::mm", 100, 300, category="gemm")]
    tables = window(ops, [call("cudaLaunchKernel", 110, 5)] if known == "calls" else ())
    if known == "clock":
        blocks = [{**HEAD, "clock": "device", "duration_ms": 1.0, "steps": 1}]
        tables.put("blocks", from_rows("blocks", blocks))
    made = profile_tables(tables, {"compiled": 1.0})
    assert set(made) == {"notes"}
    assert notes(tables)[0][0] == "times of the device (profiler window of compiled steps)"
    derived = derive(tables, {})
    assert not {"accounting", "matched_kernels", "kernel_limits"} & set(derived)
    assert derived.has("call_path")


def test_the_step_is_accounted_on_one_device():
    kernels = [kernel(100, 300, 90, 1), kernel(200, 600, 190, 2, category="copy", device=1)]
    assert us(window((), (), kernels))["copy"] == 600
    assert "gemm" not in us(window((), (), kernels))
    assert notes(window((), (), kernels))[0][1] == "not accounted: device 1 was busy longest"


def test_a_device_without_work_in_the_steps_waits_all_the_time():
    idle = window([op("aten::view", 100, 900)], (), [{**kernel(2000, 10, 1900), "step": None}])
    rows, counts, _ = step(idle)
    assert {row["kind"] for row in rows.values()} == {"idle"}
    assert counts["device_busy_ms"] == 0
    assert sum(row["profiled_ms"] for row in rows.values()) == pytest.approx(1.0)


def test_host_events_that_overlap_count_every_moment_once():
    ops = [op("aten::add", 100, 300, category="elementwise"), op("aten::mul", 200, 400)]
    found = us(window(ops))
    assert sum(found.values()) == 1000
    # A child may outlast its parent by rounding; what follows it is no operator's.
    ops = [op("aten::linear", 100, 300), op("aten::mm", 150, 251, 0, category="gemm")]
    assert us(window(ops)) == {"python": 700, "other": 50, "gemm": 250}


def test_events_of_no_length_and_without_a_thread_take_no_time():
    ops = [op("aten::add", 100, 0), op("aten::mul", 100, 300, tid=None)]
    assert us(window(ops)) == {"python": 1000}


def test_without_marked_steps_nothing_is_said_per_step():
    tables = window((), (), [kernel(100, 50, 90, 1)])
    tables.put("cpu_ops", tables["cpu_ops"].with_columns(name=pl.lit("train")))
    made = profile_tables(tables, {"compiled": 1.0})
    assert made["accounting"]["ms"].null_count() == made["accounting"].height > 0
    assert made["account_details"]["ms"].null_count() == made["account_details"].height > 0
    counts = made["step_counts"].row(0, named=True)
    assert (counts["step_ms"], counts["event_cost_us"], counts["unexplained_ms"]) == (None,) * 3


def test_without_a_timed_step_the_account_is_as_profiled():
    rows, counts, _ = step(window([op("aten::view", 100, 300)]))
    assert "unexplained" not in rows
    assert (counts["timed_step_ms"], counts["unexplained_ms"]) == (None, None)
    assert all(row["ms"] == row["profiled_ms"] for row in rows.values())


def test_one_stance_only_is_one_stance():
    made = profile_tables(window([op("aten::view", 100, 300)]), {"compiled": 0.9, "eager": 2.0})
    assert set(made["accounting"]["stance"]) == {"compiled"}


def test_no_window_is_no_table():
    failed = Tables()
    assert profile_tables(failed, {"eager": 1.0}) == {}


def steps_of(*lengths, events=1):
    """A host window with steps of these lengths, µs, each with as many operators."""
    at, rows = 0, []
    for number, length in enumerate(lengths):
        rows.append({**mark(f"traceview step {number}", at, length), "step": number})
        rows += [{**op("aten::add", at + 1 + n, 1), "step": number} for n in range(events)]
        at += length
    numbered = [{**HEAD, **row, "op_id": n} for n, row in enumerate(rows)]
    return Tables({"cpu_ops": from_rows("cpu_ops", numbered)})


def test_the_first_fifth_of_the_steps_is_the_profilers():
    found = [windows(steps_of(*lengths))[0] for lengths in ([900, 100], [900, *[100] * 9])]
    assert [window.steps for window in found] == [1, 8]
    assert found[1].host_span == (1_000_000, 1_800_000)


def test_a_step_that_was_held_up_is_left_out_and_its_time_is_nobodys():
    tables = steps_of(900, 100, 100, 100, 5000, 100, 100, 100, 100)
    found = windows(tables)[0]
    assert found.steps == 7
    assert found.notes[0][0] == "1 of 8 profiled steps"
    assert profile_tables(tables)["step_counts"]["step_ms"][0] == pytest.approx(0.1)


def test_every_other_step_is_not_held_up():
    assert windows(steps_of(900, 100, 500, 100, 500, 100, 500, 100))[0].steps == 7


def test_a_long_step_that_did_more_stays():
    tables = steps_of(900, 100, 100, 100, 100, 100, 100)
    more = {**HEAD, **op("traceview gc 2", 1000, 40), "step": 2, "op_id": 99}
    third = pl.col("name") == "traceview step 2"
    longer = tables["cpu_ops"].with_columns(
        duration_ns=pl.when(third).then(900_000).otherwise("duration_ns")
    )
    tables.put("cpu_ops", pl.concat([longer, from_rows("cpu_ops", [more])]))
    assert windows(tables)[0].steps == 6


@pytest.mark.parametrize(("block_steps", "kept"), [(6, 6), (5, 5)])
def test_a_collection_that_timed_blocks_lack_holds_up_a_step_by_chance(block_steps, kept):
    tables = steps_of(900, 100, 100, 900, 100, 100, 100)
    more = {**HEAD, **op("traceview gc 2", 1150, 800), "step": 3, "op_id": 99}
    tables.put("cpu_ops", pl.concat([tables["cpu_ops"], from_rows("cpu_ops", [more])]))
    block = {**HEAD, "pair_index": 0, "steps": block_steps}
    tables.put("blocks", from_rows("blocks", [block]))
    assert windows(tables)[0].steps == kept


def test_calls_beyond_the_steps_change_nothing():
    late = call("cudaDeviceSynchronize", 1500, 100, "sync") | {"step": None}
    kernels = [kernel(100, 50, 90, 1)]
    assert us(window((), [late], kernels)) == us(window((), (), kernels))


def test_a_trace_of_kernels_alone_says_what_it_can():
    tables = Tables({"kernels": from_rows("kernels", [{**HEAD, **kernel(100, 50, None)}])})
    made = profile_tables(tables, {"compiled": 1.0})
    assert made["kernel_groups"]["share"].to_list() == [1.0]
    assert made["accounting"]["ms"].null_count() == made["accounting"].height > 0


def test_a_cut_trace_has_the_steps_whose_marks_were_written():
    whole = steps_of(900, 100, 100, 100, 100)
    cut = Tables({"cpu_ops": whole["cpu_ops"].filter(pl.col("name") != "traceview step 4")})
    assert windows(cut)[0].steps == 3
    assert profile_tables(cut)["step_counts"]["step_ms"][0] == pytest.approx(0.1)


def cut_trace(*kernels_of_steps):
    """Steps of 100 µs with so many kernels of 10 µs each; the trace is cut."""
    tables = steps_of(*[100] * len(kernels_of_steps))
    rows = [
        {**HEAD, **kernel(100 * n + 10 * k, 10, 100 * n, 10 * n + k), "step": n}
        for n, count in enumerate(kernels_of_steps)
        for k in range(count)
    ]
    trace = {**HEAD, "file": "raw/t.json"}
    tables.put("kernels", from_rows("kernels", rows))
    tables.put("profile_windows", from_rows("profile_windows", [trace]))
    unread = {"pass": "cold", "file": "raw/t.json", "kind": "truncated", "times": 1}
    tables.put("unreadable", from_rows("unreadable", [unread]))
    return tables


def test_steps_that_a_cut_took_kernels_from_do_not_count():
    found = windows(cut_trace(4, 4, 4, 2, 0))[0]
    assert (found.steps, found.lost) == (2, False)  # and the first, in which the profiler settles
    assert found.notes == (
        ("2 of 5 profiled steps", "left out: the trace is cut, and holds them in part"),
    )
    assert profile_tables(cut_trace(4, 4, 4, 2, 0))["step_counts"]["kernels"][0] == 4


def test_a_left_trace_that_is_cut_counts_its_whole_steps_too():
    tables = cut_trace(4, 4, 4, 2, 0)
    tables.put("profile_windows", from_rows("profile_windows", []))
    assert windows(tables)[0].steps == 4  # the cut one is another file
    tables.put("traces", from_rows("traces", [{**HEAD, "name": "raw/t.json"}]))
    assert windows(tables)[0].steps == 2


@pytest.mark.parametrize("left", [(2, 0, 0), (0, 0, 0)])
def test_a_cut_that_leaves_no_whole_step_leaves_no_account(left):
    tables = cut_trace(*left)
    blocks = [{**HEAD, "clock": "device", "duration_ms": 1.0, "steps": 1}]
    tables.put("blocks", from_rows("blocks", blocks))
    assert windows(tables)[0].lost
    assert "accounting" not in profile_tables(tables)


def test_what_other_processes_of_the_trace_did_is_noted():
    tables = window([op("aten::view", 100, 300)])
    assert windows(tables)[0].notes == ()
    merged = {**HEAD, "name": "t.json", "other_processes": 2, "other_events": 1234}
    tables.put("traces", from_rows("traces", [merged]))
    what, why = notes(tables)[0]
    said = "other processes in the same trace (2; events: 1,234)"
    assert what == f"{said} (profiler window of compiled steps)"
    assert why.startswith("left out: the step is accounted on the process that has the marked")


def test_other_ranks_have_their_own_timed_step():
    tables = window([op("aten::view", 100, 300)])
    both = pl.concat(
        [tables["cpu_ops"].with_columns(rank=pl.lit(rank, dtype=pl.Int32)) for rank in (0, 1)]
    )
    tables.put("cpu_ops", both)
    speeds = [{"pass": "cold", "rank": rank, "compiled_ms": 0.9 - rank / 10} for rank in (0, 1)]
    tables.put("speedups", from_rows("speedups", speeds))
    found = profile_tables(tables, {"compiled": 5.0})["step_counts"]
    assert found["timed_step_ms"].to_list() == [0.9, 0.8]

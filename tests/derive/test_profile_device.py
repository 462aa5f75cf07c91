"""A step's time on a device: busy and idle add up, and every gap has its cause."""

from __future__ import annotations

import polars as pl
import pytest

from traceview.derive.intervals import length, merge, shared_time
from traceview.derive.profile import profile_tables
from traceview.derive.windows import windows
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "rank": None, "stance": "compiled"}


def k(start, duration, correlation, launched, category="gemm", launching=2, **more):
    return {
        **HEAD, "step": 0, "name": f"k{start}", "category": category, "start_ns": start * 1000,
        "duration_ns": duration * 1000, "correlation": correlation,
        "launch_name": "cuLaunchKernel", "launch_start_ns": launched * 1000,
        "launch_duration_ns": launching * 1000, **more,
    }  # fmt: skip


def tables_of(kernels, launches=(), steps=1, end=100, ops=()):
    """Steps of ``end`` µs on thread 1; ``ops`` are (name, start, duration) at the top."""
    names = [
        (f"traceview step {n + 7}", "user_annotation", "mark", n * end, end, n)
        for n in range(steps)
    ]
    names += [
        (name, "cpu_op", "other", start, duration, start // end) for name, start, duration in ops
    ]
    events = [
        {**HEAD, "step": step, "op_id": n, "name": name, "category": category, "kind": kind,
         "tid": "1", "start_ns": start * 1000, "duration_ns": duration * 1000, "self_ns": 0}
        for n, (name, kind, category, start, duration, step) in enumerate(names)
    ]  # fmt: skip
    rows = [{**HEAD, "step": 0, "tid": "1", **row} for row in launches]
    return Tables({
        "kernels": from_rows("kernels", kernels),
        "kernel_launches": from_rows("kernel_launches", rows),
        "cpu_ops": from_rows("cpu_ops", events),
    })  # fmt: skip


def sync(start, duration):
    return {"kind": "sync", "name": "cudaStreamSynchronize", "start_ns": start * 1000,
            "duration_ns": duration * 1000}  # fmt: skip


def accounts(tables, step_ms=None):
    frame = profile_tables(tables, step_ms)["accounting"]
    return {row["category"]: row for row in frame.iter_rows(named=True)}


def us(found):
    return {name: pytest.approx(row["profiled_ms"] * 1000) for name, row in found.items()}


def test_every_gap_has_its_cause():
    found = accounts(
        tables_of(
            [
                k(10, 10, 1, launched=5),
                k(25, 5, 2, launched=18, launching=4),  # the call was under way at 20
                k(32, 8, 3, launched=20),  # launched long before 30
                k(42, 8, 3, launched=20),  # same cudagraph
                k(60, 10, 4, launched=55),  # at 50 the host stood in the sync, since 48
                k(80, 10, 5, launched=75),  # the host was late
            ],
            [sync(48, 5)],
        )
    )
    assert us(found) == {
        "gemm": 51, "idle_launch_bound": 40, "idle_device": 2, "idle_inside_graph": 2,
        "idle_sync": 5,
    }  # fmt: skip


@pytest.mark.parametrize(("since", "synchronising"), [(48, 3 + 2), (20, 3 + 7), (49, 3 + 1)])
def test_filling_the_device_again_is_the_synchronisations_for_as_long_as_it_held_the_host(
    since, synchronising
):
    kernels = [k(0, 50, 1, launched=0), k(60, 40, 2, launched=55)]
    found = accounts(tables_of(kernels, [sync(since, 53 - since)]))
    assert us(found)["idle_sync"] == pytest.approx(synchronising)
    assert sum(row["profiled_ms"] for row in found.values()) == pytest.approx(0.1)


def test_busy_and_idle_are_the_span_and_overlaps_count_once():
    tables = tables_of(
        [
            k(0, 40, 1, launched=0, category="gemm"),
            k(20, 40, 2, launched=1, category="copy", stream=9),
            k(50, 60, 3, launched=2, category="gemm"),
        ]
    )
    found, counts = accounts(tables), profile_tables(tables)["step_counts"].row(0, named=True)
    assert us(found) == {"gemm": 20 + 10 + 5 + 50, "copy": 10 + 10 + 5}
    assert counts["device_busy_ms"] == pytest.approx(0.110)
    # The last kernel ends after the step's mark: the span follows it.
    assert counts["step_ms"] == pytest.approx(0.110)
    assert counts["device_idle_ms"] == 0
    assert found["gemm"]["count"] == 2


def late_host(steps=5, events=4, sleep=0, cost=5):
    """Steps in which the host runs ``events`` operators of 1 µs, each after ``cost`` + 4 µs, then
    launches a kernel of 10 µs and sleeps."""
    ops, kernels, launches, at = [], [], [], 0
    end = events * (cost + 5) + 10 + sleep
    for step in range(steps):
        at = step * end
        for n in range(events):
            ops.append(("aten::view", at + cost + 4 + n * (cost + 5), 1))
        launched = at + events * (cost + 5) + cost
        kernels.append(k(launched + 6, 10, step, launched, step=step))
        launches.append({"step": step, "kind": "launch", "name": "cuLaunchKernel", "kernels": 1,
                         "start_ns": launched * 1000, "duration_ns": 2000,
                         "correlation": step})  # fmt: skip
    return tables_of(kernels, launches, steps, end, ops)


def test_the_profilers_cost_goes_by_events_and_not_by_time():
    """Two µs for each of five events (the launch is one) go from launching, none from a sleep."""
    found = accounts(late_host(sleep=5000), {"compiled": 5.050 - 0.010})
    assert found["idle_python"]["ms"] == pytest.approx(
        found["idle_python"]["profiled_ms"], rel=0.001
    )
    assert found["idle_python"]["ms"] == pytest.approx(5.0, rel=0.01)
    assert found["gemm"]["ms"] == pytest.approx(0.010)
    assert found["unexplained"]["ms"] == pytest.approx(0, abs=0.001)
    counts = profile_tables(late_host(sleep=5000), {"compiled": 5.040})["step_counts"].row(
        0, named=True
    )
    assert counts["event_cost_us"] == pytest.approx(2.0, rel=0.1)
    assert (counts["events"], counts["timed_step_ms"]) == (5.0, 5.04)


def test_what_the_profiler_cannot_have_cost_is_unexplained_and_not_spread():
    free = accounts(late_host(sleep=5000))
    found = accounts(late_host(sleep=5000), {"compiled": 2.0})
    assert found["unexplained"]["kind"] == "unexplained"
    assert found["unexplained"]["ms"] < -2.9
    assert found["idle_python"]["ms"] == pytest.approx(free["idle_python"]["ms"], rel=0.01)
    assert sum(row["ms"] for row in found.values()) == pytest.approx(2.0)


def test_a_step_longer_than_the_profiled_one_is_not_stretched():
    free = accounts(late_host())
    found = accounts(late_host(), {"compiled": 1.0})
    assert found["gemm"]["ms"] == pytest.approx(free["gemm"]["profiled_ms"])
    assert found["unexplained"]["ms"] > 0.9
    counts = profile_tables(late_host(), {"compiled": 1.0})["step_counts"].row(0, named=True)
    assert counts["event_cost_us"] is None


def test_a_device_that_is_never_without_work_takes_as_long_as_its_kernels():
    """The window begins with a drained device and ends with a full queue: neither is a step's."""
    kernels = [k(10 + 50 * n, 48, n, launched=4 * n, step=n // 2) for n in range(10)]
    found = accounts(tables_of(kernels, steps=5, end=8), {"compiled": 0.1})
    assert found["gemm"]["ms"] == pytest.approx(0.096)
    assert found["idle_device"]["ms"] == pytest.approx(0.004)
    assert found["unexplained"]["ms"] == pytest.approx(0, abs=1e-9)


def test_hidden_communication_is_not_counted_as_the_steps():
    kernels = [
        k(0, 60, 1, launched=0),
        k(40, 40, 2, launched=1, category="communication", stream=9),
    ]
    made = profile_tables(tables_of(kernels))
    counts = made["step_counts"].row(0, named=True)
    assert counts["exposed_communication_ms"] == pytest.approx(0.020)
    assert counts["hidden_communication_ms"] == pytest.approx(0.020)
    busy = {row["category"]: row["ms"] for row in made["accounting"].filter(kind="busy").to_dicts()}
    assert busy == {"gemm": pytest.approx(0.06), "communication": pytest.approx(0.02)}


def test_figures_are_per_step():
    tables = tables_of([k(10, 40, 1, launched=5), k(110, 40, 2, launched=105, step=1)], steps=2)
    counts = profile_tables(tables)["step_counts"].row(0, named=True)
    # The first step is the profiler's own.
    assert (counts["steps"], counts["kernels"], counts["device_busy_ms"]) == (1, 1.0, 0.04)


@pytest.mark.parametrize(
    ("calls", "steps", "host_ms"),
    [([], 10, 0.3), ([sync(60, 30)], 10, None), ([], 1000, None)],
    ids=["free", "waits", "queue is full"],
)
def test_the_hosts_own_time_is_that_of_the_timed_blocks(calls, steps, host_ms):
    called = {"kind": "launch", "name": "cuLaunchKernel", "start_ns": 5000, "duration_ns": 2000}
    tables = tables_of([k(10, 40, 1, launched=5)], [called, *calls])
    block = {**HEAD, "steps": steps, "clock": "device", "duration_ms": steps * 0.5}
    blocks = [{**block, "pair_index": n, "host_ms": steps * ms} for n, ms in enumerate((0.2, 0.4))]
    tables.put("blocks", from_rows("blocks", [*blocks, {**block, "host_ms": steps * 9.0}]))
    found = profile_tables(tables)["step_counts"]["host_ms"][0]
    assert found == (host_ms and pytest.approx(host_ms))


def test_work_outside_the_steps_is_not_counted():
    tables = tables_of([k(10, 40, 1, launched=5), k(200, 40, 2, launched=190, step=None)])
    assert profile_tables(tables)["step_counts"]["device_busy_ms"][0] == pytest.approx(0.04)


def test_without_marks_there_is_no_figure_per_step():
    tables = tables_of([k(10, 40, 1, launched=5)], steps=0)
    tables.put("cpu_ops", tables["cpu_ops"].clear())
    made = profile_tables(tables)
    assert made["accounting"]["ms"].null_count() == made["accounting"].height > 0
    assert made["step_counts"]["steps"].to_list() == [None]
    assert made["kernel_groups"]["share"].to_list() == [1.0]


def test_without_windows_there_is_no_table():
    assert profile_tables(Tables()) == {}


def test_an_unlinked_kernels_gap_is_called_so():
    kernel = k(10, 40, None, launched=0)
    bare = {**kernel, "launch_start_ns": None, "launch_duration_ns": None, "launch_name": None}
    assert us(accounts(tables_of([bare])))["idle_unlinked"] == 10


def test_generated_kernels_know_their_operators_and_lines():
    kernels = [
        k(10, 10, 1, 5, "generated_pointwise", graph_key="f1", compile_id="0/0"),
        k(30, 10, 2, 25, "generated_pointwise", graph_key="f2"),
    ]
    for row in kernels:
        row["name"] = "triton_poi_fused_add_0"
    tables = tables_of(kernels)
    common = {"pass": "cold", "kernel_name": "triton_poi_fused_add_0"}
    tables.put("generated_kernels", from_rows("generated_kernels", [
        {**common, "graph_key": "f1", "compile_id": "0/0", "fused_ops": ["aten.add"],
         "user_lines": ["a.py:3"]},
        {**common, "graph_key": "f2", "compile_id": "1/0", "fused_ops": ["aten.mul"],
         "user_lines": ["a.py:9"]},
    ]))  # fmt: skip
    groups = profile_tables(tables)["kernel_groups"].sort("compile_id")
    assert groups.select("compile_id", "fused_ops", "user_lines", "count").rows() == [
        ("0/0", ["aten.add"], ["a.py:3"], 1.0), ("1/0", ["aten.mul"], ["a.py:9"], 1.0),
    ]  # fmt: skip


def test_a_backwards_compile_comes_from_the_cache_key():
    tables = tables_of([k(10, 10, 1, 5, "generated_reduction", graph_key="fb")])
    event = {"pass": "cold", "cache": "fx_graph", "event": "miss", "key": "fb", "compile_id": "3/1"}
    tables.put("cache_events", from_rows("cache_events", [event]))
    assert profile_tables(tables)["kernel_groups"]["compile_id"].to_list() == ["3/1"]


def test_merging_and_sharing_intervals():
    assert merge([(5, 9), (0, 3), (3, 4), (8, 12), (20, 20)]) == [(0, 4), (5, 12)]
    assert length([(0, 10), (5, 15)]) == 15
    shares = shared_time(["a", "b", "a"], [(0, 10), (5, 15), (5, 10)])
    assert sum(shares.values()) == pytest.approx(15)
    assert shares["b"] == pytest.approx(5 / 3 + 5)


def test_categories_of_the_accounting_are_those_of_the_kernels():
    tables = tables_of([k(10, 40, 1, launched=5, category="attention")])
    busy = profile_tables(tables)["accounting"].filter(pl.col("kind") == "busy")
    assert busy["category"].to_list() == ["attention"]


def test_groups_know_the_programs_of_their_largest_launch():
    sizes = [("[4, 1, 1]", "[128, 1, 1]"), ("[8, 2, 1]", "[32, 4, 1]")]
    kernels = [
        k(10 * n, 5, n, 1, grid=grid, block=block, multiprocessors=132)
        for n, (grid, block) in enumerate(sizes, 1)
    ]
    for row in kernels:
        row["name"] = "own"
    (group,) = profile_tables(tables_of(kernels))["kernel_groups"].to_dicts()
    assert (group["programs"], group["threads"], group["multiprocessors"]) == (16, 128, 132)
    (group,) = profile_tables(tables_of([k(10, 5, 1, 1, "copy")]))["kernel_groups"].to_dicts()
    assert (group["programs"], group["threads"], group["multiprocessors"]) == (None, None, None)


def window_of(durations, extra, collections=None):
    """Steps of these µs; ``extra``: events (step, name, kind) that one of them has more."""
    starts = [sum(durations[:n]) for n in range(len(durations))]
    spans = list(zip(starts, durations, strict=True))
    events = [
        (step, name, kind, *spans[step])
        for step in range(len(durations))
        for name, kind in ((f"traceview step {step}", "user_annotation"), ("aten::mm", "cpu_op"))
    ] + [(step, name, kind, *spans[step]) for step, name, kind in extra]
    rows = [
        {**HEAD, "step": step, "op_id": n, "name": name, "category": "mark", "kind": kind,
         "tid": "1", "start_ns": start * 1000, "duration_ns": length * 1000, "self_ns": 0}
        for n, (step, name, kind, start, length) in enumerate(events)
    ]  # fmt: skip
    kernels = [k(start + 1, 1, n, start, step=n) for n, (start, _) in enumerate(spans)]
    block = {**HEAD, "steps": 4, "clock": "device", "pair_index": 0, "collections": collections}
    (window,) = windows(
        Tables({
            "cpu_ops": from_rows("cpu_ops", rows),
            "kernels": from_rows("kernels", kernels),
            "blocks": from_rows("blocks", [block]),
        })
    )  # fmt: skip
    return sorted(window.marks["step"].to_list()), dict(window.notes)


LOGGED = [(7, "aten::item", "cpu_op")]
COLLECTED = [(7, "traceview gc 2", "user_annotation")]


@pytest.mark.parametrize(
    ("long", "extra", "collections", "steps"),
    [
        (90, LOGGED, None, [2, 3, 4, 5, 6]),
        (15, LOGGED, None, [2, 3, 4, 5, 6, 7, 8, 9]),  # not far longer
        (90, [(n, "aten::item", "cpu_op") for n in (5, 7)], None, [2, 3, 4, 5, 6, 7, 8, 9]),
        (90, COLLECTED, 0, [2, 3, 4, 5, 6]),
        (90, COLLECTED, 1, [2, 3, 4, 5, 6, 7, 8, 9]),  # the timed steps have them, too
    ],
)
def test_a_step_that_is_long_for_work_of_its_own_parts_the_window(long, extra, collections, steps):
    durations = [10] * 7 + [long] + [10] * 2
    found, notes = window_of(durations, extra, collections)
    assert found == steps
    parted = "3 of 8 profiled steps"
    assert (parted in notes) is (len(steps) == 5)

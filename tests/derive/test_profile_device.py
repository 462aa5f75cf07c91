"""A step's time on a device: busy and idle add up, and every gap has its cause."""

from __future__ import annotations

import polars as pl
import pytest

from traceview.derive.intervals import length, merge, shared_time
from traceview.derive.profile import profile_tables
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "rank": None, "stance": "compiled"}


def k(start, duration, correlation, launched, category="gemm", launching=2, **more):
    return {
        **HEAD, "step": 0, "name": f"k{start}", "category": category, "start_ns": start * 1000,
        "duration_ns": duration * 1000, "correlation": correlation,
        "launch_name": "cuLaunchKernel", "launch_start_ns": launched * 1000,
        "launch_duration_ns": launching * 1000, **more,
    }  # fmt: skip


def tables_of(kernels, launches=(), steps=1, end=100):
    marks = [
        {**HEAD, "step": n, "op_id": n, "name": f"traceview step {n + 7}", "category": "mark",
         "kind": "user_annotation", "tid": "1", "start_ns": n * end * 1000,
         "duration_ns": end * 1000, "self_ns": 0}
        for n in range(steps)
    ]  # fmt: skip
    rows = [{**HEAD, "step": 0, **row} for row in launches]
    return Tables({
        "kernels": from_rows("kernels", kernels),
        "kernel_launches": from_rows("kernel_launches", rows),
        "cpu_ops": from_rows("cpu_ops", marks),
    })  # fmt: skip


def accounts(tables, step_ms=None):
    frame = profile_tables(tables, step_ms)["accounting"]
    return {row["category"]: row for row in frame.iter_rows(named=True)}


def us(found):
    return {name: pytest.approx(row["profiled_ms"] * 1000) for name, row in found.items()}


def test_every_gap_has_its_cause():
    sync = {"kind": "sync", "name": "cudaStreamSynchronize", "start_ns": 48_000,
            "duration_ns": 5_000}  # fmt: skip
    found = accounts(
        tables_of(
            [
                k(10, 10, 1, launched=5),  # first: launched after the step began
                k(25, 5, 2, launched=18, launching=4),  # the call was under way at 20
                k(32, 8, 3, launched=20),  # launched long before 30
                k(42, 8, 3, launched=20),  # same cudagraph
                k(60, 10, 4, launched=55),  # at 50 the host stood in the sync
                k(80, 10, 5, launched=75),  # the host was late
            ],
            [sync],
        )
    )
    assert us(found) == {
        "gemm": 51, "idle_launch_bound": 20, "idle_launch_in_flight": 5, "idle_device": 2,
        "idle_inside_graph": 2, "idle_sync": 10, "idle_no_more_work": 10,
    }  # fmt: skip


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


def test_idle_time_is_what_busy_time_leaves_of_the_timed_step():
    tables = tables_of([k(10, 40, 1, launched=5), k(60, 20, 2, launched=5)], end=100)
    found = accounts(tables, {"compiled": 0.075})
    assert us(found) == {
        "gemm": 60, "idle_launch_bound": 10, "idle_device": 10, "idle_no_more_work": 20,
    }  # fmt: skip
    assert {name: row["ms"] * 1000 for name, row in found.items()} == {
        "gemm": pytest.approx(60), "idle_launch_bound": pytest.approx(3.75),
        "idle_device": pytest.approx(3.75), "idle_no_more_work": pytest.approx(7.5),
    }  # fmt: skip


@pytest.mark.parametrize(("step", "busy"), [(0.03, 0.03), (0.13, 0.07)])
def test_a_device_waits_between_nothing_and_what_was_profiled(step, busy):
    found = accounts(tables_of([k(10, 40, 1, launched=5)]), {"compiled": step})
    assert found["gemm"]["ms"] == pytest.approx(busy)
    assert sum(row["ms"] for row in found.values()) == pytest.approx(step)


def test_the_start_of_a_window_is_no_part_of_a_step():
    kernels = [k(80, 20, 1, launched=70), k(100, 95, 2, launched=75, step=1)]
    found = accounts(tables_of(kernels, steps=2), {"compiled": 0.06})
    assert us(found) == {"gemm": 57.5, "idle_window_start": 40, "idle_no_more_work": 2.5}
    assert found["idle_window_start"]["ms"] == 0
    assert found["idle_no_more_work"]["ms"] == pytest.approx(0.0025)
    assert found["gemm"]["ms"] == pytest.approx(0.0575)


def test_figures_are_per_step():
    tables = tables_of([k(10, 40, 1, launched=5), k(110, 40, 2, launched=105, step=1)], steps=2)
    counts = profile_tables(tables)["step_counts"].row(0, named=True)
    assert (counts["steps"], counts["kernels"], counts["device_busy_ms"]) == (2, 1.0, 0.04)


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

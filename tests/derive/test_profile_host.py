"""A step's time on a CPU: the rows add up to the step, gaps and overhead are what the marks say."""

from __future__ import annotations

import pytest

from traceview.derive.facts import add_log_facts
from traceview.derive.profile import profile_tables
from traceview.derive.region_costs import region_costs
from traceview.derive.windows import windows
from traceview.tables import Tables, from_rows

REGION = "Torch-Compiled Region: "
GRAPH = "## Call CompiledFxGraph f1 ##"


def window(ops, stance="compiled", regions=()):
    """Tables of one step of 100 µs; an op is (name, category, start, duration, self, parent)."""
    head = {"pass": "cold", "stance": stance, "step": 0, "tid": "1"}
    marks = [("traceview step 4", "mark", 0, 100, 0, None), *ops]
    rows = [
        {**head, "op_id": n, "name": name, "category": category, "start_ns": start * 1000,
         "duration_ns": duration * 1000, "self_ns": own * 1000, "parent_id": parent, "region": "0"}
        for n, (name, category, start, duration, own, parent) in enumerate(marks)
    ]  # fmt: skip
    return Tables({"cpu_ops": from_rows("cpu_ops", rows), "regions": from_rows("regions", regions)})


COMPILED = [
    ("traceview region 0", "mark", 5, 80, 4, None),
    ("TorchDynamo Cache Lookup", "overhead", 6, 4, 4, 1),
    (REGION + "0/0", "overhead", 10, 72, 12, 1),
    ("CompiledFunction", "overhead", 12, 20, 4, 3),
    (GRAPH, "overhead", 14, 16, 6, 4),
    ("graph_0_cpp_fused_add_0", "generated_pointwise", 16, 10, 10, 5),
    ("TorchDynamo Cache Lookup", "overhead", 45, 5, 5, 3),
    (REGION + "1/0", "overhead", 50, 30, 10, 3),
    (GRAPH, "overhead", 55, 20, 5, 8),
    ("aten::addmm", "gemm", 56, 15, 15, 9),
]


def test_rows_add_up_to_the_step():
    found = profile_tables(window(COMPILED))["accounting"]
    us = {row["category"]: round(row["profiled_ms"] * 1000) for row in found.to_dicts()}
    assert us == {
        "overhead_cache_lookup": 9,
        "overhead_compiled_region": (72 - 20 - 5 - 30 - 13) + (30 - 20),
        "graph_break": 13,  # from the end of the first graph's call to the next look-up
        "overhead_runtime_wrappers": 4,
        "overhead_generated_wrapper": 6 + 5,
        "generated_pointwise": 10,
        "gemm": 15,
        "python": 20 + 4,
    }
    assert sum(us.values()) == 100
    assert set(found["clock"]) == {"host"}


def test_an_operators_own_time_holds_no_event_and_stays():
    """What the profiler cost goes from around the events: leaves keep their time."""
    found = profile_tables(window(COMPILED), {"compiled": 0.09})
    ms = {row["category"]: row["ms"] for row in found["accounting"].to_dicts()}
    assert sum(ms.values()) == pytest.approx(0.09)
    assert (ms["gemm"], ms["generated_pointwise"]) == (pytest.approx(0.015), pytest.approx(0.010))
    assert ms["unexplained"] == pytest.approx(0, abs=1e-5)
    # Nine events cost 10 µs, and the mark of the region's call as much as eight more.
    assert found["step_counts"]["event_cost_us"][0] == pytest.approx(10 / 17, rel=0.05)
    assert found["step_counts"]["events"][0] == 10


def test_a_sleep_keeps_its_length():
    ops = [("aten::view", "other", n, 1, 1, None) for n in range(0, 60, 3)]
    found = profile_tables(window(ops), {"compiled": 0.08})["accounting"]
    ms = {row["category"]: row["ms"] for row in found.to_dicts()}
    # Between 20 operators 19 stretches of 2 µs lose the 20 µs; the 42 µs after them lose one half.
    assert ms["other"] == pytest.approx(0.020)
    assert ms["python"] == pytest.approx(0.0185 + 0.0415, abs=1e-4)


def test_the_mark_of_a_garbage_collection_costs_inside_too():
    """Callbacks open and close it: of 2 µs an event, one goes from either side of both edges."""
    ops = [("traceview gc 2", "mark", at, 12, 12, None) for at in (5, 25, 45, 65)]
    found = profile_tables(window(ops), {"compiled": 0.1 - 4 * 4 * 0.001})
    ms = {row["category"]: row["ms"] for row in found["accounting"].to_dicts()}
    assert found["step_counts"]["event_cost_us"][0] == pytest.approx(2.0, rel=0.01)
    assert ms["gc"] == pytest.approx(4 * (0.012 - 0.002), rel=0.01)
    assert ms["python"] == pytest.approx(0.052 - 4 * 0.002, rel=0.01)


def test_what_cannot_be_the_profilers_is_unexplained():
    found = profile_tables(window(COMPILED), {"compiled": 0.02})["accounting"]
    ms = {row["category"]: row["ms"] for row in found.to_dicts()}
    assert ms["unexplained"] < -0.005
    assert (ms["gemm"], sum(ms.values())) == (pytest.approx(0.015), pytest.approx(0.02))


def marks(**causes):
    """A step of 100 µs: each mark lies around an operator of 10 µs."""
    ops, at = [], 5
    for name in causes.values():
        ops += [
            (name, "mark", at, 14, 4, None),
            ("aten::add", "elementwise", at + 2, 10, 10, len(ops) + 1),
        ]
        at += 20
    return window(ops)


def test_marks_name_the_cause_of_everything_in_them():
    found = profile_tables(
        marks(
            loader="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            compiling="compile_fx_inner (dynamo_timed)", collecting="traceview gc 2",
            ours="traceview own",
        )
    )  # fmt: skip
    us = {
        row["category"]: round(row["profiled_ms"] * 1000) for row in found["accounting"].to_dicts()
    }
    assert us == {"python": 100 - 4 * 14 - 21, "data_loading": 14, "compile": 14, "gc": 14}
    # After its own mark the collector ends the step's.
    assert found["step_counts"]["step_ms"][0] == pytest.approx(0.065)


def test_the_optimizers_python_is_its_own():
    found = profile_tables(marks(step="Optimizer.step#AdamW.step"))["accounting"]
    us = {row["category"]: round(row["profiled_ms"] * 1000) for row in found.to_dicts()}
    assert us == {"python": 86, "optimizer_python": 4, "elementwise": 10}


def test_the_gap_lies_between_a_graph_and_the_next_look_up_even_inside_the_region():
    counts = profile_tables(window(COMPILED))["step_counts"].row(0, named=True)
    assert (counts["gaps"], counts["gap_ms"]) == (1.0, pytest.approx(0.013))
    assert counts["compiled_regions"] == 2
    assert counts["cache_lookup_ms"] == pytest.approx(0.009)
    assert counts["call_overhead_ms"] == pytest.approx(0.013)
    assert counts["device_busy_ms"] is None


def test_where_torch_marks_no_graph_a_gap_is_not_known():
    """Below 2.9 it marks only those with a backward."""
    unmarked = [(name.replace(GRAPH, "f").replace("CompiledFunction", "f"), *rest)
                for name, *rest in COMPILED]  # fmt: skip
    counts = profile_tables(window(unmarked))["step_counts"].row(0, named=True)
    assert (counts["gaps"], counts["gap_ms"]) == (None, None)
    assert counts["compiled_regions"] == 2


def test_kernels_on_a_cpu_are_the_operators_that_work():
    made = profile_tables(window(COMPILED))
    assert made["step_counts"]["kernels"].to_list() == [2.0]
    groups = made["kernel_groups"].sort("ms")
    assert groups.select("name", "share").rows() == [
        ("graph_0_cpp_fused_add_0", 0.4), ("aten::addmm", 0.6),
    ]  # fmt: skip


def test_unrecorded_generated_kernels_are_the_wrappers_time():
    tables = window([op for op in COMPILED if "cpp_fused" not in op[0]])
    written = [{"pass": "cold", "kernel_name": "cpp_fused_add_0", "category": "cpp"}]
    tables.put("generated_kernels", from_rows("generated_kernels", written))
    categories = profile_tables(tables)["accounting"]["category"].to_list()
    assert "generated_other" in categories
    assert "overhead_generated_wrapper" not in categories


def test_an_operator_across_the_last_edge_counts_with_its_part_inside():
    tables = window([("Optimizer.step#SGD.step", "mark", 90, 30, 10, None),
                     ("aten::add_", "elementwise", 95, 20, 20, 1)])  # fmt: skip
    found = profile_tables(tables)["accounting"]
    us = {row["category"]: round(row["profiled_ms"] * 1000) for row in found.to_dicts()}
    assert us == {"elementwise": 5, "optimizer_python": 5, "python": 90}


def test_other_threads_do_not_lengthen_the_step():
    tables = window([("aten::mm", "gemm", 10, 20, 20, None)])
    other = tables["cpu_ops"].tail(1).to_dicts()[0] | {"tid": "9", "op_id": 7}
    rows = [*tables["cpu_ops"].to_dicts(), other]
    tables.put("cpu_ops", from_rows("cpu_ops", rows))
    found = profile_tables(tables)["accounting"]
    assert found["profiled_ms"].sum() == pytest.approx(0.1)


def test_cpp_kernels_find_what_inductor_wrote():
    tables = window(COMPILED)
    names = {"pass": "cold", "kernel_name": "cpp_fused_add_0", "category": "cpp"}
    known = {"compile_id": "0/0", "fused_ops": ["aten.add"], "user_lines": ["a.py:3"]}
    written = [names | known]
    tables.put("generated_kernels", from_rows("generated_kernels", written))
    groups = profile_tables(tables)["kernel_groups"]
    row = groups.filter(category="generated_pointwise").row(0, named=True)
    assert (row["compile_id"], row["fused_ops"]) == ("0/0", ["aten.add"])


def test_a_regions_part_of_the_step():
    region = {"pass": "cold", "pid": 3, "region_id": 0, "name": "f", "calls": 50, "target_line": 0}
    compiled = {"pass": "cold", "pid": 3, "compile_key": "k", "co_firstlineno": 0}
    compiled |= {"duration_us": 2e6, "started_us": 0.0}
    other = region | {"region_id": 1, "target_line": 1}
    tables = window(COMPILED, regions=[region, other])
    tables.put("compiles", from_rows("compiles", [compiled]))
    add_log_facts(tables)
    made, idle = region_costs(tables, windows(tables)).to_dicts()
    assert made["compiled_ms"] == pytest.approx(0.08)
    assert (made["calls_per_step"], made["share"]) == (1.0, pytest.approx(0.8))
    assert (made["eager_ms"], made["compile_s"], made["compiles"]) == (None, 2.0, 1)
    assert (idle["calls_per_step"], idle["share"]) == (None, None), "not called: not zero"
    assert (idle["compile_s"], idle["compiles"]) == (0.0, 0)

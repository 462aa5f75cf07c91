"""Profiler windows recorded on an H200: totals, links and what is known of every kernel."""

import json
from pathlib import Path

import polars as pl
import pytest

from traceview.derive.windows import windows

INDEX = Path(__file__).resolve().parents[2] / "fixtures" / "runs" / "INDEX.json"
RECORDED = json.loads(INDEX.read_text())
#: Runs whose script lived long enough for its windows.
PROFILED = (
    "gpu-gemm_bound", "gpu-reduce_overhead", "gpu-transformer_training", "gpu-launch_bound",
    "gpu-cg_skip_mutation", "gpu-mem_peak_up", "gpu-tf32_off",
)  # fmt: skip
GENERATED = pl.col("category").str.starts_with("generated_")


@pytest.fixture(params=[name for name in PROFILED if name in RECORDED])
def tables(request, tables_of):
    return tables_of(request.param)


def stance(tables, table, name):
    return tables[table].filter(stance=name)


def share(frame, condition, weight):
    """Part of the ``weight`` of ``frame`` in the rows for which ``condition`` holds."""
    return frame.filter(condition)[weight].sum() / frame[weight].sum()


def test_both_stances_have_whole_steps(tables):
    assert {window.stance: bool(window.steps) for window in windows(tables)} == {
        "eager": True, "compiled": True,
    }  # fmt: skip
    assert tables["kernels"]["step"].null_count() == 0
    assert tables["unreadable"].is_empty()


def test_every_kernel_has_its_launch_and_operator(tables):
    kernels = tables["kernels"]
    assert kernels["launch_name"].null_count() == 0
    assert kernels["cpu_op"].null_count() == 0
    assert kernels.filter(pl.col("launch_start_ns") > pl.col("start_ns")).is_empty()
    assert set(kernels["kind"]) <= {"kernel", "memcpy", "memset"}


def test_launches_led_to_all_the_kernels(tables):
    assert tables["kernel_launches"]["kernels"].sum() == tables["kernels"].height


def test_busy_and_idle_are_the_span_to_a_hundredth_of_a_microsecond(tables):
    for window in windows(tables):
        rows = stance(tables, "accounting", window.stance)
        us = rows["profiled_ms"].sum() * window.steps * 1000
        kernels = window.main_kernels
        last = (kernels["start_ns"] + kernels["duration_ns"]).max()
        first = max(window.host_span[0], min(window.begun_ns, kernels["start_ns"].min()))
        span = (max(window.host_span[1], last) - first) / 1000
        between = window.host_span[1] - window.host_span[0] - window.marks["duration_ns"].sum()
        own = window.ops.filter(pl.col("name") == "traceview own")["duration_ns"].sum()
        # Where the collector works, and ends a step's mark, idle time is nobody's.
        ours = (between + own) / 1000 + window.steps * 100
        assert span - ours - 0.01 <= us <= span + 0.01
        counts = stance(tables, "step_counts", window.stance).row(0, named=True)
        busy = rows.filter(kind="busy")["profiled_ms"].sum()
        assert busy == pytest.approx(counts["device_busy_ms"], abs=1e-5)
        assert us / 1000 / window.steps == pytest.approx(counts["step_ms"], abs=1e-5)


def test_the_accounting_adds_up_to_the_timed_step(tables):
    timed = tables["speedups"].row(0, named=True)
    for name in ("eager", "compiled"):
        rows = stance(tables, "accounting", name)
        assert rows["ms"].sum() == pytest.approx(timed[f"{name}_ms"])
        assert set(rows["clock"]) == {"device"}
        named = ~pl.col("kind").is_in(["unexplained", "machine_speed"])
        assert rows.filter(named)["ms"].min() >= 0
        details = (
            stance(tables, "account_details", name).group_by("category").agg(pl.col("ms").sum())
        )
        whole = dict(rows.select("category", "ms").iter_rows())
        assert set(details["category"]) == set(rows.filter(named)["category"])
        for category, ms in details.iter_rows():
            assert ms == pytest.approx(whole[category], abs=1e-9)


def test_no_kernel_is_of_an_unknown_category(tables):
    assert tables["kernels"].filter(category="other")["name"].unique().to_list() == []
    names = tables["kernels"].filter(pl.col("name").str.contains("(?i)nvjet|gemm|cutlass"))
    assert set(names["category"]) <= {"gemm"}


def test_generated_kernels_are_known_to_the_graph_and_the_users_line(tables):
    kernels = stance(tables, "kernels", "compiled").filter(GENERATED)
    if kernels.is_empty():  # library calls alone
        assert set(tables["generated_kernels"]["category"]) == {"extern"}
        return
    known = pl.col("graph_key").is_not_null() & pl.col("compile_id").is_not_null()
    assert share(kernels, known, "duration_ns") == 1.0
    groups = stance(tables, "kernel_groups", "compiled").filter(GENERATED)
    assert groups["compile_id"].null_count() == 0
    for column in ("fused_ops", "user_lines"):
        assert share(groups, pl.col(column).list.len() > 0, "ms") >= 0.95
    assert stance(tables, "kernels", "eager").filter(GENERATED).is_empty()


def test_the_region_holds_what_it_launched_in_both_stances(tables):
    marked = {
        name: share(stance(tables, "kernels", name), pl.col("region") == "0", "duration_ns")
        for name in ("eager", "compiled")
    }
    assert min(marked.values()) > 0.5
    costs = tables["region_costs"].row(0, named=True)
    assert costs["calls_per_step"] == 1.0
    assert 0 < costs["share"] <= 1
    assert costs["eager_ms"] > 0 < costs["compiled_ms"]


def test_a_cudagraphs_kernels_belong_to_its_launch(tables_of):
    tables = tables_of("gpu-reduce_overhead")
    kernels = stance(tables, "kernels", "compiled")
    replayed = kernels.filter(in_cudagraph=True)
    assert replayed.height == 49 * 60
    assert set(replayed["launch_name"]) == {"cudaGraphLaunch"}
    assert replayed["correlation"].n_unique() == 60
    assert set(replayed["compile_id"]) == {"0/0"}
    assert replayed["graph_key"].null_count() == 0
    # Inputs are copied to the addresses that were recorded, by one launch of its own.
    assert kernels.filter(in_cudagraph=False)["category"].unique().to_list() == ["copy"]
    counts = stance(tables, "step_counts", "compiled").row(0, named=True)
    assert (counts["launches"], counts["graph_launches"], counts["kernels"]) == (2.0, 1.0, 50.0)


def test_a_backward_has_its_own_graph_and_its_forwards_compile_and_region(tables_of):
    tables = tables_of("gpu-transformer_training")
    kernels = stance(tables, "kernels", "compiled").filter(GENERATED)
    forward, backward = (
        tables["generated_kernels"].filter(aot_id=name)["graph_key"].unique().to_list()
        for name in ("0_forward", "0_backward")
    )
    assert (len(forward), len(backward)) == (1, 1)
    assert set(kernels["graph_key"]) == {*forward, *backward}
    mine = kernels.filter(graph_key=backward[0])
    assert set(mine["compile_id"]) == {"0/0"}
    assert set(mine["region"]) == {"0"}


def test_eager_backward_kernels_lie_in_the_region_of_their_forward(tables_of):
    kernels = stance(tables_of("gpu-transformer_training"), "kernels", "eager")
    backward = kernels.filter(cpu_op="aten::native_layer_norm_backward")
    assert backward.height > 0
    assert set(backward["region"]) == {"0"}
    assert set(kernels.filter(category="optimizer")["region"]) == {None}


def test_a_device_with_a_queue_does_not_idle(tables_of):
    """The window lay before the device was held at its power limit, as in later blocks."""
    rows = stance(tables_of("gpu-gemm_bound"), "accounting", "compiled")
    explained = rows.filter(~pl.col("kind").is_in(["unexplained", "machine_speed"]))
    assert share(explained, pl.col("category") == "gemm", "ms") > 0.95
    assert set(explained.filter(kind="idle")["category"]) == {"idle_device"}


def test_a_step_that_waits_for_launches_says_so(tables_of):
    rows = stance(tables_of("gpu-launch_bound"), "accounting", "compiled")
    assert share(rows, pl.col("category") == "idle_launch_bound", "ms") > 0.7


def test_waits_in_a_graph_stand_at_the_line_that_copies(tables_of):
    details = stance(tables_of("gpu-cg_skip_cpu"), "account_details", "compiled")
    waits = details.filter(pl.col("category").is_in(["idle_sync", "idle_copy_wait", "copy"]))
    copies = waits.filter(pl.col("what").str.contains("^cuda|to the device"))
    assert set(copies["line"]) == {19}  # x.to(device) in forward; line 34 calls the graph
    assert copies["in_graph"].all()
    assert copies["count"].to_list() == [8.0] * 3


def test_a_compiled_optimizer_step_runs_foreach_kernels(tables_of):
    accounting = tables_of("gpu-compiled_optimizer")["accounting"]
    counts = dict(
        accounting.filter(pl.col("category").is_in(["optimizer", "generated_foreach"]))
        .select("stance", "count").iter_rows()
    )  # fmt: skip
    assert counts == {"eager": 16, "compiled": 3}


def test_the_dearest_guards_of_a_recorded_run_have_names_and_lines(tables_of):
    tables = tables_of("gpu-compiled_optimizer")
    costs = tables["guard_costs"].filter(compile_id="0/0").drop_nulls("us")
    whole, layers = costs.iter_rows(named=True)
    assert (whole["source_name"], whole["guards"]) == (None, 97)
    assert (layers["source_name"], layers["guards"]) == (
        "L['self']._modules['layers']._modules", 72,
    )  # fmt: skip
    assert layers["line"] == 18  # x = x + torch.relu(layer(x))
    assert 1 < layers["us"] < whole["us"]

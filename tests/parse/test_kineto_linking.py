"""Who launched what, in which step, region and graph."""

from __future__ import annotations

import pytest
from kineto_traces import column, cpp_layout, event, gpu_step, kernel, launch, read

from traceview.parse.kineto.linking import call_kind


@pytest.fixture
def tables(tmp_path):
    found, damage = read(tmp_path / "t.json", cpp_layout(gpu_step()))
    assert damage == {}
    return found


def test_only_device_events_are_kernels(tables):
    # Inductor's CPU event of a Triton kernel has "stream": 0 and its name, and is none.
    kernels = tables["kernels"]
    assert kernels.height == 6
    assert kernels.filter(name="triton_poi_fused_add_0")["duration_ns"].to_list() == [4000]
    assert kernels["duration_ns"].sum() == 21_000


def test_every_kernel_is_linked_by_correlation_alone(tables):
    assert column(tables["kernels"], "name", "launch_name") == {
        "nvjet_tst_128x64": "cuLaunchKernelEx",
        "triton_poi_fused_add_0": "cuLaunchKernel",
        "triton_red_fused_sum_0": "cudaGraphLaunch",
        "cutlass_80_tensorop_gemm": "cudaGraphLaunch",
        "triton_per_fused_mean_1": "cuLaunchKernel",
        "Memcpy DtoH (Device -> Pinned)": "cudaMemcpyAsync",
    }


def test_a_replay_leads_to_several_kernels(tables):
    replay = tables["kernel_launches"].filter(kind="graph_launch")
    assert replay["kernels"].to_list() == [2]
    assert tables["kernels"].filter(in_cudagraph=True).height == 2


def test_the_operator_is_the_deepest_around_the_launch(tables):
    ops = column(tables["kernels"], "name", "cpu_op")
    assert ops["nvjet_tst_128x64"] == "aten::addmm"
    assert ops["triton_red_fused_sum_0"] == "Torch-Compiled Region: 1/0"
    row = tables["kernels"].filter(name="nvjet_tst_128x64").row(0, named=True)
    op = tables["cpu_ops"].filter(op_id=row["cpu_op_id"]).row(0, named=True)
    assert (op["name"], op["input_dims"].replace(" ", "").replace("\n", "")) == (
        "aten::addmm", "[[4,8],[]]",
    )  # fmt: skip


def test_backward_on_autograds_thread_has_region_and_compile_of_its_forward(tables):
    row = tables["kernels"].filter(name="triton_per_fused_mean_1").row(0, named=True)
    assert (row["region"], row["compile_id"], row["graph_key"]) == ("0", "0/0", "fback")


def test_graph_compile_and_category(tables):
    kernels = tables["kernels"].select("name", "graph_key", "compile_id", "category")
    assert kernels.sort("name").rows() == [
        ("Memcpy DtoH (Device -> Pinned)", None, None, "copy"),
        ("cutlass_80_tensorop_gemm", "fgraph", "1/0", "gemm"),
        ("nvjet_tst_128x64", None, None, "gemm"),
        ("triton_per_fused_mean_1", "fback", "0/0", "generated_persistent_reduction"),
        ("triton_poi_fused_add_0", "fabc", "0/0", "generated_pointwise"),
        ("triton_red_fused_sum_0", "fgraph", "1/0", "generated_reduction"),
    ]


def test_steps_count_from_zero_and_no_launch_is_left_outside(tables):
    assert set(tables["kernels"]["step"]) == {0}
    assert set(tables["kernel_launches"]["step"]) == {0}


def test_a_kernel_without_launcher_is_kept_unlinked(tmp_path):
    events = [*gpu_step(), kernel("orphan", 30, 2, 999)]
    tables, _ = read(tmp_path / "t.json", cpp_layout(events))
    row = tables["kernels"].filter(name="orphan").row(0, named=True)
    assert (row["launch_name"], row["launch_start_ns"], row["step"]) == (None, None, 0)


def test_times_are_exact_to_the_nanosecond(tmp_path):
    events = [launch(0, 1, 1), kernel("k", 0.005, 0.001, 1), kernel("k2", 0.006, 0.002, 1)]
    tables, _ = read(tmp_path / "t.json", cpp_layout(events))
    rows = tables["kernels"].select("start_ns", "duration_ns").rows()
    assert rows == [(5, 1), (6, 2)]


def test_nesting_forgives_a_microsecond_and_not_more(tmp_path):
    events = [
        event("aten::linear", "cpu_op", 0, 10),
        event("aten::addmm", "cpu_op", 5, 5.9),
        event("aten::mul", "cpu_op", 20, 10),
        event("aten::sum", "cpu_op", 25, 10),
    ]
    tables, _ = read(tmp_path / "t.json", cpp_layout(events))
    assert column(tables["cpu_ops"], "name", "parent_id") == {
        "aten::linear": None, "aten::addmm": 0, "aten::mul": None, "aten::sum": None,
    }  # fmt: skip
    assert column(tables["cpu_ops"], "name", "self_ns")["aten::linear"] == 4100


def test_an_operator_that_hands_on_does_no_work_itself(tmp_path):
    events = [event("aten::linear", "cpu_op", 0, 10), event("aten::addmm", "cpu_op", 1, 5)]
    tables, _ = read(tmp_path / "t.json", cpp_layout(events))
    categories = column(tables["cpu_ops"], "name", "category")
    assert categories == {"aten::linear": "other", "aten::addmm": "gemm"}


@pytest.mark.parametrize("inner", ["aten::copy_", "aten::linalg_lu_solve"])
@pytest.mark.parametrize(("took", "category"), [((2, 2, 5), "unlisted"), ((6, 6, 3), "other")])
def test_an_unknown_operator_works_if_it_takes_longer_than_what_it_calls(
    tmp_path, inner, took, category
):
    """All its calls together: one may have been interrupted."""
    events = []
    for start, within in zip((0, 20, 40), took, strict=True):
        events.append(event("aten::frobnicate", "cpu_op", start, 9))
        events.append(event(inner, "cpu_op", start + 1, within))
    tables, _ = read(tmp_path / "t.json", cpp_layout(events))
    ops = tables["cpu_ops"].filter(name="aten::frobnicate")
    assert ops["category"].to_list() == [category] * 3


def test_a_step_that_begins_inside_an_operator_does_not_break_its_nesting(tmp_path):
    events = [
        event("traceview step 3", "user_annotation", 0, 10),
        event("Optimizer.step#SGD.step", "user_annotation", 5, 10),
        event("traceview step 4", "user_annotation", 10, 10),
        event("aten::add_", "cpu_op", 12, 2),
    ]
    tables, _ = read(tmp_path / "t.json", cpp_layout(events))
    optimizer = tables["cpu_ops"].filter(name="Optimizer.step#SGD.step").row(0, named=True)
    add = tables["cpu_ops"].filter(name="aten::add_").row(0, named=True)
    assert add["parent_id"] == optimizer["op_id"]
    assert (optimizer["step"], add["step"]) == (0, 1)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaLaunchKernelExC", "launch"), ("cuLaunchKernelEx", "launch"),
        ("cudaGraphLaunch", "graph_launch"), ("cudaDeviceSynchronize", "sync"),
        ("cudaMemsetAsync", "copy"), ("cudaMalloc", "alloc"), ("cudaLaunchHostFunc", "other"),
        ("cudaEventRecord", "other"),
    ],
)  # fmt: skip
def test_kinds_of_calls(name, kind):
    assert call_kind(name) == kind

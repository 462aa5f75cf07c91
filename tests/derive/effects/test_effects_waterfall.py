"""From the eager median to the compiled one: every change under its own name, the sum exact."""

from __future__ import annotations

import pytest
from effect_steps import account, derived, effects, kernel

FUSED = {"group_id": 0, "kind": "fused", "matched": True}


def ms(found):
    return {name: pytest.approx(row["ms"]) for name, row in found.items() if row["ms"]}


def test_fewer_and_shorter_kernels_are_fusion():
    found, rows = effects(
        [
            kernel(0, "eager", "add_kernel", 0.3, cpu_op="aten::add", count=2.0),
            kernel(0, "eager", "gelu_kernel", 0.2, cpu_op="aten::gelu"),
            kernel(0, "compiled", "triton_poi_0", 0.1, "generated_pointwise"),
        ],
        groups=[FUSED],
    )
    assert ms(found) == {"fusion": -0.4}
    assert found["fusion"]["eager_ms"] == pytest.approx(0.5)
    assert rows[0]["what"] == "aten::add ×2, aten::gelu → triton_poi_0"
    assert rows[0]["group_id"] == 0


@pytest.mark.parametrize("line", [9, 8], ids=["the same line", "another line"])
def test_a_scatter_that_compiled_code_leaves_to_another_operator(line):
    code = {"compile_id": "0/0", "graph_key": "fx"}
    found, _ = effects(
        [
            kernel(0, "eager", "neg_kernel", 0.2, cpu_op="aten::neg", file="/a.py", line=9),
            kernel(
                0, "eager", "add", 0.4, "indexing", cpu_op="aten::index_add_", file="/a.py", line=9
            ),
            kernel(0, "compiled", "triton_poi_0", 0.1, "generated_pointwise", **code),
            kernel(
                *(0, "compiled", "radix_sort", 3.4, "indexing"),
                **{"cpu_op": "aten::_index_put_impl_", "file": "/a.py", "line": line, **code},
            ),
        ],
        groups=[FUSED],
    )
    expected = {"library_choice": 3.0, "fusion": -0.1} if line == 9 else {"fusion": 2.9}
    assert ms(found) == expected


@pytest.mark.parametrize(
    ("compiled", "effect"), [(4.0, {}), (5.0, {"copies_added": 0.25})], ids=["as many", "more"]
)
def test_no_fused_kernel_replaces_what_is_copied_to_the_host(compiled, effect):
    """In eager each copy is one of its operator's kernels, in compiled steps none's."""
    move, each = "Memcpy DtoH (Device -> Pinned)", 0.25
    found, _ = effects(
        [
            kernel(0, "eager", "add_kernel", 0.3, cpu_op="aten::add"),
            kernel(0, "eager", move, 4 * each, "copy", cpu_op="aten::copy_", count=4.0),
            kernel(0, "compiled", "triton_poi_0", 0.1, "generated_pointwise"),
            kernel(1, "compiled", move, compiled * each, "copy", count=compiled),
        ],
        groups=[FUSED, {"group_id": 1, "kind": "fused", "matched": False}],
    )
    assert ms(found) == {"fusion": -0.2, **effect}


def test_casts_are_apart_from_fusion():
    found, _ = effects(
        [
            kernel(0, "eager", "copy_kernel", 0.3, "copy", cpu_op="aten::copy_"),
            kernel(0, "eager", "add_kernel", 0.5),
            kernel(0, "compiled", "triton_poi_1", 0.2, "generated_pointwise", ops=["aten.add"]),
            kernel(
                0, "compiled", "triton_poi_2", 0.1, "generated_pointwise", ops=["aten._to_copy"]
            ),
        ],
        groups=[{**FUSED, "eager_casts_ms": 0.25}],
    )
    assert ms(found) == {"casts_saved": 0.1 - 0.25, "fusion": 0.2 - 0.55}


def test_another_library_kernel_and_an_unchanged_one():
    found, _ = effects(
        [
            kernel(0, "eager", "cublas_a", 1.0, "gemm", count=4.0),
            kernel(0, "compiled", "cublas_padded", 0.7, "gemm", count=4.0),
            kernel(1, "eager", "cublas_b", 0.5, "gemm", count=2.0),
            kernel(1, "compiled", "cublas_b", 0.51, "gemm", count=2.0),
        ],
        groups=[{"group_id": n, "kind": "library", "matched": True} for n in (0, 1)],
    )
    assert ms(found) == {"library_choice": -0.3, "other_kernels": 0.01}


def test_a_product_that_became_a_generated_kernel_is_a_choice_of_library():
    found, _ = effects(
        [
            kernel(0, "eager", "gemv", 0.4, "gemm"),
            kernel(0, "eager", "relu", 0.1),
            kernel(0, "compiled", "triton_per_0", 0.2, "generated_persistent_reduction"),
        ],
        groups=[FUSED],
    )
    assert ms(found) == {"library_choice": -0.3}


def test_an_epilogue_apart_from_its_product():
    found, _ = effects(
        [
            kernel(0, "eager", "cublas_bias", 1.0, "gemm", cpu_op="aten::addmm"),
            kernel(0, "eager", "relu", 0.1),
            kernel(0, "compiled", "cublas", 0.9, "gemm"),
            kernel(0, "compiled", "triton_poi_0", 0.12, "generated_pointwise"),
        ],
        groups=[FUSED],
    )
    assert ms(found) == {"library_choice": -0.1, "fusion": 0.02}


def test_copies_that_only_the_compiled_step_makes():
    found, _ = effects(
        [
            kernel(0, "compiled", "foreach_copy", 0.02, "copy"),
            kernel(1, "compiled", "triton_poi_3", 0.03, "generated_pointwise",
                   ops=["aten.clone", "aten.view"]),
            kernel(2, "compiled", "triton_poi_4", 0.05, "generated_pointwise", ops=["aten.add"]),
            kernel(3, "eager", "add", 0.01),
        ],
        groups=[{"group_id": n, "kind": "compiled_only"} for n in (0, 1, 2)]
        + [{"group_id": 3, "kind": "eager_only"}],
    )  # fmt: skip
    assert ms(found) == {"copies_added": 0.05, "other_kernels": 0.04}


def test_launches_saved_and_those_that_a_cudagraph_saved():
    idle = [
        account("eager", "idle_launch_bound", 1.0, "idle"),
        account("compiled", "idle_launch_bound", 0.2, "idle"),
        account("compiled", "idle_inside_graph", 0.05, "idle"),
    ]
    counts = [
        {"stance": "eager", "launches": 60.0, "kernels": 60.0, "graph_launches": 0.0},
        {"stance": "compiled", "launches": 10.0, "kernels": 50.0, "graph_launches": 1.0},
    ]
    found, _ = effects([], idle, counts=counts)
    assert ms(found) == {"launches_saved": -0.8 * 10 / 50, "cudagraphs": -0.8 * 40 / 50 + 0.05}
    assert found["cudagraphs"]["confidence"] == "derived"
    without = [{**row, "graph_launches": 0.0} for row in counts]
    found, _ = effects([], idle[:2], counts=without)
    assert ms(found) == {"launches_saved": -0.8}
    assert found["launches_saved"]["confidence"] == "measured"


def test_overheads_and_other_idle_time_by_cause():
    found, rows = effects(
        [],
        [
            account("compiled", "idle_guards", 0.1, "idle"),
            account("compiled", "idle_graph_break", 0.2, "idle"),
            account("eager", "idle_sync", 0.5, "idle"),
            account("compiled", "idle_sync", 0.4, "idle"),
            account("compiled", "overhead_runtime_wrappers", 0.3, "overhead", clock="host"),
            account("eager", "python", 0.25, "other", clock="host"),
            account("eager", "idle_python", 0.05, "idle"),
        ],
    )
    assert ms(found) == {"overheads_added": 0.6, "other_idle": -0.1, "launches_saved": -0.3}
    assert {row["what"] for row in rows if row["effect"] == "overheads_added"} == {
        "idle_guards", "idle_graph_break", "overhead_runtime_wrappers",
    }  # fmt: skip


def test_what_the_accounting_leaves_is_never_spread():
    found, rows = effects(
        [kernel(0, "eager", "add", 0.5), kernel(0, "compiled", "triton_poi_0", 0.2)],
        [
            account("eager", "unexplained", 0.1, "unexplained"),
            account("compiled", "unexplained", -0.2, "unexplained"),
        ],
        groups=[FUSED],
        timed=(1.0, 0.5),
    )
    assert found["fusion"]["ms"] == pytest.approx(-0.3)
    assert found["unexplained"]["ms"] == pytest.approx(-0.2)
    assert sum(row["ms"] for row in found.values()) == pytest.approx(-0.5, abs=1e-12)
    assert {row["what"] for row in rows if row["effect"] == "unexplained"} == {
        "unexplained", "not in the accounting",
    }  # fmt: skip


def test_overlap_is_taken_out_and_missing_kernels_stay_visible():
    accounts = [
        account("eager", "elementwise", 0.8, profiled_ms=0.8),  # 1.0 with the overlap twice
        account("eager", "gemm", 0.5),  # of which 0.2 has no row
        account("compiled", "gemm", 0.3),
    ]
    kernels = [
        kernel(0, "eager", "add", 0.6), kernel(0, "eager", "mul", 0.4),
        kernel(1, "eager", "cublas", 0.3, "gemm"), kernel(1, "compiled", "cublas", 0.3, "gemm"),
    ]  # fmt: skip
    groups = [{"group_id": 0, "kind": "eager_only"}, {"group_id": 1, "kind": "library"}]
    found, rows = derived(accounts, 1.3, 0.3, kernels, groups)
    assert ms(found) == {"other_kernels": -1.0}
    changes = {row["what"]: row["ms"] for row in rows}
    assert changes["add, only eager"] == pytest.approx(-0.48)
    assert changes["gemm"] == pytest.approx(-0.2)
    assert changes["cublas, in both"] == pytest.approx(0.0)


def test_without_matching_the_categories_still_add_up():
    found, rows = derived(
        [account("eager", "gemm", 1.0), account("compiled", "gemm", 0.4)], 1.0, 0.4
    )
    assert ms(found) == {"other_kernels": -0.6}
    assert [row["what"] for row in rows] == ["gemm", "unexplained"]


def test_one_stance_alone_makes_no_waterfall():
    assert derived([account("eager", "gemm", 1.0)], 1.0, 0.5) == ({}, [])
    both = [account("eager", "gemm", 1.0), account("compiled", "gemm", 1.0)]
    assert derived(both, 1.0, None) == ({}, [])


def test_a_slower_machine_in_the_timed_blocks_makes_all_of_a_step_longer():
    accounts = [
        account("eager", "gemm", 0.6),
        account("eager", "idle_python", 0.2, "idle"),
        account("eager", "machine_speed", 0.4, "machine_speed"),
        account("compiled", "gemm", 0.8),
        account("compiled", "machine_speed", -0.2, "machine_speed"),
    ]
    kernels = [
        kernel(0, "eager", "sgemm", 0.6, "gemm"),
        kernel(0, "compiled", "sgemm", 0.8, "gemm"),
    ]
    found, _ = derived(accounts, 1.2, 0.6, kernels)
    assert ms(found) == {"other_kernels": 0.6 - 0.9, "launches_saved": -0.3}


def test_a_device_that_waits_for_a_slower_host_has_kernels_as_long_as_ever():
    accounts = [
        account("eager", "gemm", 0.2),
        account("eager", "idle_launch_bound", 0.6, "idle"),
        account("eager", "machine_speed", 0.3, "machine_speed"),
        account("compiled", "gemm", 0.2),
    ]
    kernels = [
        kernel(0, "eager", "sgemm", 0.2, "gemm"),
        kernel(0, "compiled", "sgemm", 0.2, "gemm"),
    ]
    found, _ = derived(accounts, 1.1, 0.2, kernels)
    assert ms(found) == {"launches_saved": -0.9}

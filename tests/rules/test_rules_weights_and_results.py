"""Work on weights alone, attention, products and results that are seldom read, on rows by hand."""

import pytest

from traceview.rules import (
    ind_expanded_product,
    ind_plain_attention,
    ind_repeated_heads,
    ind_strided_scan,
    ind_unread_results,
    ind_weight_work,
)

STEP = {"stance": "compiled", "steps": 5, "step_ms": 2.0, "timed_step_ms": 2.0}
SPEEDUP = {"eager_ms": 3.0, "compiled_ms": 2.0, "speedup": 1.5}
LINES = ["/u/train.py:29", "/u/train.py:44"]


def checked(rule, make, settings=None, **tables):
    made = make(step_counts=[STEP], speedups=[SPEEDUP], **tables)
    return list(rule.check(made, **(settings or {})))


WORK = {
    **{
        "compile_key": "k",
        "compile_id": "0/0",
        "kernel_name": "triton_red_fused_0",
        "clock": "device",
    },
    **{"ops": ["aten._weight_norm_interface"], "weights": 2, "bytes": 1 << 20, "user_lines": LINES},
    **{"count": 8.0, "profiled_ms": 0.4, "share": 1.0, "ms": 0.4},
}


def test_all_kernels_on_weights_alone_are_one_finding(make):
    other = {**WORK, "kernel_name": "triton_2", "ms": 0.2, "ops": ["aten.mul"]}
    (found,) = checked(ind_weight_work, make, weight_work=[WORK, other])
    assert found.cost.ms_per_step == pytest.approx(0.6)
    assert found.title.startswith("weight_norm at train.py:29 is computed again in every call")
    assert "4 weights, 2.00 MiB" in found.explanation
    assert "remove_parametrizations" in found.snippet.text
    assert "torch._inductor.config.freezing=True" in found.remedy


@pytest.mark.parametrize("change", [{"ms": 0.05}, {"ms": None}])
def test_little_work_on_weights_and_such_without_a_time(make, change):
    assert checked(ind_weight_work, make, weight_work=[{**WORK, **change}]) == []


ATTENTION = {
    **{"compile_key": "k", "compile_id": "0/0", "line": LINES[0], "calls": 4, "clock": "device"},
    **{"scores": [128, 2304, 2304], "kernel_names": ["triton_1"], "profiled_ms": 1.0, "ms": 0.9},
}


def test_attention_in_steps_says_how_large_the_scores_are(make):
    less = {**ATTENTION, "line": None, "ms": 0.1, "calls": 1}
    (found,) = checked(ind_plain_attention, make, plain_attention=[ATTENTION, less])
    assert found.cost.ms_per_step == pytest.approx(1.0)
    assert "128×2304×2304" in found.explanation
    assert "5 times" in found.explanation
    assert found.location.line == 29
    little = {"least_share": 0.6}
    assert checked(ind_plain_attention, make, little, plain_attention=[ATTENTION]) == []


NAME = {"region_id": 0, "item": 1, "items": 2, "name": "rates", "file": "/u/train.py", "line": 31}
KERNEL = {
    **{"stance": "compiled", "name": "cpp_fused_0", "category": "generated_pointwise"},
    **{"count": 1.0, "ms": 1.8, "bytes": 4_000_000, "clock": "host"},
}


def results(make, names, sizes=(1_000_000, 2_000_000), **kernel):
    ends = [{"region_id": 0, "compared": True, "result_bytes": sizes and [*sizes]}]
    rows = {"end_checks": ends, "kernel_limits": [{**KERNEL, **kernel}]}
    return checked(ind_unread_results, make, result_names=names, **rows)


def test_what_is_seldom_read_costs_its_part_of_what_kernels_move(make):
    (found,) = results(make, [{**NAME, "read": "sometimes"}])
    assert found.cost.ms_per_step == pytest.approx(0.9)
    assert found.title.startswith("rates (train.py:31) is read in some steps only, but written")
    (found,) = results(make, [{**NAME, "read": "never"}])
    assert "is never read" in found.title


@pytest.mark.parametrize("sizes", [None, (1, 2, 3), (1_000_000, 0), (4_000_000, 100_000)])
def test_unknown_other_and_small_results_are_no_finding(make, sizes):
    assert results(make, [{**NAME, "read": "never"}], sizes) == []


HEADS = {
    **{"compile_key": "k", "compile_id": "0/0", "line": LINES[0], "clock": "device", "copies": 4},
    **{"times": 8, "kernel_names": ["triton_1"], "profiled_ms": 1.0, "ms": 0.9, "spared_ms": 0.3},
}


def test_repeated_heads_cost_the_copies_and_what_is_read_more_than_once(make):
    (found,) = checked(ind_repeated_heads, make, repeated_heads=[HEADS])
    assert found.cost.ms_per_step == pytest.approx(1.2)
    assert found.location.line == 29
    assert "written out 8 times" in found.title
    assert "reading them 0.300 ms more" in found.explanation
    small = {**HEADS, "ms": 0.05, "spared_ms": 0.0}
    assert checked(ind_repeated_heads, make, repeated_heads=[small]) == []


def gains(op, shape, kind, base, **ways):
    head = {"kind": kind, "ops": [op], "shape": shape, "base_ms": base, "clock": "host"}
    return [{**head, "way": way, "ms": ms} for way, ms in ways.items()]


@pytest.mark.parametrize(
    ("copied", "category", "pays"),
    [(0.4, "fallback", True), (1.2, "fallback", False), (0.4, "cpp", None)],
)
def test_a_scan_over_elements_that_lie_apart(make, copied, category, pays):
    found = checked(
        ind_strided_scan,
        make,
        kernel_calls=[{"kernel_name": "torch.ops.aten.cumsum.default", "category": category}],
        matched_kernels=[
            {"stance": "compiled", "name": "aten::cumsum", "compile_id": "0/0", "ms": 1.0}
            | {"file": "/u/train.py", "line": 29}
        ],
        shape_gains=gains("aten::cumsum", "512x1024", "along", 1.0, contiguous=0.1, copied=copied),
    )
    assert [each.cost.ms_per_step for each in found] == (
        [] if pays is None else [pytest.approx(0.9)]
    )
    for each in found:
        assert each.location.line == 29
        assert (each.snippet is not None) is pays


PRODUCTS = """
    def forward(self, a: "f32[128, 128][128, 1]cpu", b: "f32[64, 128, 4][512, 4, 1]cpu"):
        # File: /u/train.py:29 in forward, code: y = torch.matmul(a, b)
        wide: "f32[64, 128, 128][{stride}, 128, 1]cpu" = torch.ops.aten.expand.default(a, [64])
        bmm: "f32[64, 128, 4][512, 4, 1]cpu" = torch.ops.aten.bmm.default(wide, b)
        return (bmm,)
"""


@pytest.mark.parametrize(("stride", "count"), [(0, 1), (16384, 0)])
def test_a_matrix_that_is_multiplied_with_each_part_of_a_batch(make, stride, count):
    found = checked(
        ind_expanded_product,
        make,
        graphs=[{"kind": "post_grad", "text": PRODUCTS.replace("{stride}", str(stride))}],
        matched_kernels=[
            {"stance": "compiled", "category": "gemm", "ops": ["aten.bmm"], "ms": 1.0}
            | {"file": "/u/train.py", "line": 29}
        ],
        shape_gains=gains("aten::bmm", "64x128x128, 64x128x4", "gemm", 1.0, **{"one product": 0.2}),
    )
    assert len(found) == count
    for each in found:
        assert each.cost.ms_per_step == pytest.approx(0.8)
        assert "torch.einsum" in each.snippet.text

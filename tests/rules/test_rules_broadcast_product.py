"""Which broadcasts and sums are matrix products, and what a product would save."""

import pytest

from traceview.rules import ind_broadcast_product
from traceview.torchtext.fx import read_graph

HEAD = """
    def forward(self, arg0_1: "f32[4096, 64][64, 1]{device}", arg1_1: "f32[512, 64][64, 1]{device}", arg2_1: "f32[64][1]{device}", arg3_1: "f32[512][1]{device}"):
        # File: /srv/train.py:9 in nearest, code: …
        unsqueeze: "f32[4096, 1, 64][64, 64, 1]{device}" = torch.ops.aten.unsqueeze.default(arg0_1, 1)
        unsqueeze_1: "f32[1, 512, 64][32768, 64, 1]{device}" = torch.ops.aten.unsqueeze.default(arg1_1, 0)
"""  # noqa: E501 - as torch writes it
SUB, MUL = (f"aten.{name}.Tensor(unsqueeze, unsqueeze_1)" for name in ("sub", "mul"))
POW, SUM = "aten.pow.Tensor_Scalar({0}, 2)", "aten.sum.dim_IntList({0}, [-1])"


def graph(*calls, returned="", device="cuda:0"):
    """A graph that makes each of ``calls`` of the result of the one before."""
    text, last = HEAD.format(device=device), ""
    for at, call in enumerate(calls):
        last, call = f"n{at}", call.format(last)
        meta = "f32[4096, 512, 64][32768, 64, 1]"
        if "aten.sum" in call or "aten.mean" in call:
            meta = "f32[4096, 512][512, 1]"
        text += f'        {last}: "{meta}{device}" = torch.ops.{call}\n'
    return f"{text}        return ({returned}{last},)\n"


@pytest.mark.parametrize(
    "calls",
    [
        (SUB, POW, SUM),
        (SUB, "aten.mul.Tensor({0}, {0})", "aten.mean.dim({0}, [2], True)"),
        (MUL, SUM),
        # A weight for each feature, a scale, a small number that keeps from zero, a cast.
        (SUB, POW, "aten.mul.Tensor({0}, arg2_1)", SUM),
        (SUB, "aten.mul.Tensor(arg2_1, {0})", POW, "aten.div.Tensor({0}, 64)", SUM),
        (SUB, "aten.add.Tensor({0}, 1e-06)", "aten.pow.Tensor_Scalar({0}, 2.0)", SUM),
        (MUL, "prims.convert_element_type.default({0}, torch.float32)", SUM),
    ],
)
def test_matrix_products(calls):
    (product,) = ind_broadcast_product.broadcast_products(read_graph(graph(*calls)))
    assert product[1:6] == (1, 4096, 512, 64, calls[0] == SUB)
    assert (product.dtype, product.device) == ("float32", "cuda:0")
    assert product.line == "/srv/train.py:9"


@pytest.mark.parametrize(
    ("calls", "returned"),
    [
        ((SUB, "aten.abs.default({0})", SUM), ""),  # L1
        ((SUB, "aten.abs.default({0})", POW, SUM), ""),
        ((SUB, "aten.pow.Tensor_Scalar({0}, 3)", SUM), ""),
        ((SUB, POW, POW, SUM), ""),
        ((SUB, POW, "aten.exp.default({0})", SUM), ""),
        ((SUB, POW, "aten.add.Tensor({0}, 1.0)", SUM), ""),
        ((SUB, SUM), ""),
        ((MUL, "aten.add.Tensor({0}, 1.0)", POW, SUM), ""),
        (("aten.maximum.default(unsqueeze, unsqueeze_1)", SUM), ""),
        ((SUB, POW, "aten.sum.dim_IntList({0}, [1])"), ""),  # one result for each row and feature
        ((SUB, POW, "aten.amax.default({0}, [-1])"), ""),
        ((SUB, POW, SUM), "n0, "),  # the differences are needed, too
        (("aten.sub.Tensor(unsqueeze, arg2_1)", POW, SUM), ""),
        # A weight for each row of one side is no part of a product.
        ((SUB, POW, "aten.mul.Tensor({0}, unsqueeze)", SUM), ""),
    ],
)
def test_what_is_no_product_of_matrices(calls, returned):
    text = graph(*calls, returned=returned)
    assert list(ind_broadcast_product.broadcast_products(read_graph(text))) == []


def test_batches_and_tensors_that_are_expanded():
    text = """
    def forward(self, arg0_1: "bf16[8, 128, 64][8192, 64, 1]cpu", arg1_1: "bf16[8, 64, 256][16384, 256, 1]cpu"):
        unsqueeze: "bf16[8, 128, 64, 1][8192, 64, 1, 1]cpu" = torch.ops.aten.unsqueeze.default(arg0_1, 3)
        expand: "bf16[8, 128, 64, 256][8192, 64, 1, 0]cpu" = torch.ops.aten.expand.default(unsqueeze, [8, 128, 64, 256])
        unsqueeze_1: "bf16[8, 1, 64, 256][16384, 16384, 256, 1]cpu" = torch.ops.aten.unsqueeze.default(arg1_1, 1)
        mul: "bf16[8, 128, 64, 256][2097152, 16384, 256, 1]cpu" = torch.ops.aten.mul.Tensor(expand, unsqueeze_1)
        sum_1: "bf16[8, 128, 256][32768, 256, 1]cpu" = torch.ops.aten.sum.dim_IntList(mul, [2])
        return (sum_1,)
"""  # noqa: E501 - as torch writes it
    (product,) = ind_broadcast_product.broadcast_products(read_graph(text))
    assert product[1:8] == (8, 128, 256, 64, False, "bfloat16", "cpu")
    few = text.replace("[8, 128, 64", "[8, 8, 64").replace("[8, 128, 256]", "[8, 8, 256]")
    assert list(ind_broadcast_product.broadcast_products(read_graph(few))) == []


def found(make, ms=4.0, dtype="float32", nodes=("n2", "n1", "n0"), **settings):
    run = {"compile_id": "0/0", "aot_id": "0_inference"}
    compiled = {**run, "compile_key": "cold:1:0:0/0"}
    call = {
        **{"kernel_name": "triton_per_fused_0", "post_nodes": nodes},
        **{"ops": ["aten.sum"], "user_lines": ["/srv/train.py:9"]},
    }
    ceiling = {"device": "cuda:0", "size": "1 GiB", "unit": "GB/s"}
    tables = make(
        graphs=[{**compiled, "kind": "post_grad", "text": graph(SUB, POW, SUM)}],
        kernel_calls=[{**compiled, **call}],
        matched_kernels=[
            {**run, "stance": "compiled", "name": "triton_per_fused_0", "count": 1.0, "ms": ms}
        ],
        ceilings=[
            {**ceiling, "kind": "copy", "value": 2000.0},
            {**ceiling, "kind": "l2_copy", "value": 2000.0, "size": "8 MiB"},
            {**ceiling, "kind": "matmul", "dtype": dtype, "value": 50.0},
        ],
        speedups=[{"eager_ms": 20.0, "compiled_ms": 5.0}],
        step_counts=[{"stance": "compiled", "step_ms": 6.0, "timed_step_ms": 3.0}],
    )
    return list(ind_broadcast_product.check(tables, **settings))


#: 2 × 4096 × 512 × 64 operations at 50 TFLOP/s; both operands once, the result three times.
LEAST = 2 * 4096 * 512 * 64 / 50e9 + 4 * ((4096 + 512) * 64 + 3 * 4096 * 512) / 2000e6


@pytest.mark.parametrize("nodes", [("n2", "n1", "n0"), None])
def test_the_saving_is_the_kernel_less_a_product_on_the_step_as_timed(make, nodes):
    (finding,) = found(make, nodes=nodes)
    assert finding.cost.ms_per_step == pytest.approx(4.0 / 2 - LEAST, rel=1e-6)
    assert (finding.location.line, finding.weighs) == (9, True)
    assert "4,096 × 512, 64 features" in finding.title


@pytest.mark.parametrize(
    "other",
    [
        {"ms": 0.3},  # little of the step
        {"ms": 0.02},  # faster than the product
        {"dtype": "bfloat16"},  # no rate was measured
        {"nodes": ("n1", "n0")},  # the sum is in no kernel that ran
        {"least_share": 0.9},
    ],
)
def test_what_saves_little_or_is_not_known_is_not_reported(make, other):
    assert found(make, **other) == []

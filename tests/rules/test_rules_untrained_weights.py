"""Which part of a backward only the gradients of untrained weights need."""

import pytest

from traceview.rules import ind_untrained_weights
from traceview.rules.ind_untrained_weights import needless, path

#: x → first → second: gradients of the second's weight (3), the first's (1).
BACKWARD = """
    def forward(self, primals_1: "f32[8, 4][4, 1]cpu", primals_2: "f32[2, 4][4, 1]cpu", mm: "f32[2, 8][8, 1]cpu", primals_3: "f32[6, 8][8, 1]cpu", tangents_1: "f32[2, 6][6, 1]cpu"):
        permute: "f32[6, 2][1, 6]cpu" = torch.ops.aten.permute.default(tangents_1, [1, 0])
        mm_1: "f32[6, 8][8, 1]cpu" = torch.ops.aten.mm.default(permute, mm);  permute = mm = None
        mm_2: "f32[2, 8][8, 1]cpu" = torch.ops.aten.mm.default(tangents_1, primals_3);  primals_3 = None
        permute_1: "f32[8, 2][1, 8]cpu" = torch.ops.aten.permute.default(mm_2, [1, 0]);  mm_2 = None
        mm_3: "f32[8, 4][4, 1]cpu" = torch.ops.aten.mm.default(permute_1, primals_2);  permute_1 = None
        return (
            mm_3,  # GradAOTOutput(grad_of=PlainAOTInput(idx=0))
            None,  # None
            mm_1,  # GradAOTOutput(grad_of=PlainAOTInput(idx=2))
        )
"""  # noqa: E501 - as torch writes it
CONVOLUTION = """
    def forward(self, primals_1: "f32[4, 3, 3, 3][27, 9, 3, 1]cpu", primals_2: "f32[1, 3, 8, 8][192, 64, 8, 1]cpu", tangents_1: "f32[1, 4, 6, 6][144, 36, 6, 1]cpu"):
        convolution_backward = torch.ops.aten.convolution_backward.default(tangents_1, primals_2, primals_1, [4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True])
        getitem: "f32[1, 3, 8, 8][192, 64, 8, 1]cpu" = convolution_backward[0]
        getitem_1: "f32[4, 3, 3, 3][27, 9, 3, 1]cpu" = convolution_backward[1]
        getitem_2: "f32[4][1]cpu" = convolution_backward[2];  convolution_backward = None
        return (
            getitem_1,  # GradAOTOutput(grad_of=PlainAOTInput(idx=0))
            getitem,  # GradAOTOutput(grad_of=PlainAOTInput(idx=1))
        )
"""  # noqa: E501
CAPTURED = """
    def forward(self, L_self_modules_first_parameters_weight_: "f32[8, 4][4, 1]cpu", L_x_: "f32[2, 4][4, 1]cpu", L_self_modules_second_parameters_weight_: "f32[6, 8][8, 1]cpu"):
        l_w_ = L_self_modules_second_parameters_weight_
        # File: /u/train.py:9 in forward, code: return self.second(self.first(x))
        y: "f32[2, 6][6, 1]cpu" = torch._C._nn.linear(L_x_, l_w_);  l_w_ = None
        return (y,)
"""  # noqa: E501


@pytest.mark.parametrize(
    ("unneeded", "share"),
    [(set(), 0.0), ({2}, 96 / 256), ({0}, 160 / 256), ({0, 2}, 1.0)],
)
def test_what_no_other_gradient_needs_is_needless(unneeded, share):
    assert needless(BACKWARD, unneeded)[0] == pytest.approx(share)


def test_a_convolution_makes_both_gradients_in_one_call():
    assert needless(CONVOLUTION, {0})[0] == needless(CONVOLUTION, {1})[0] == 0.5


def test_names_are_those_of_modules():
    assert path("L_self_modules_features_modules_0_parameters_weight_") == "features.0.weight"
    assert path("L_net_modules_up_conv_parameters_bias_") == "up_conv.bias"
    assert path("L_x_") == ""


@pytest.mark.parametrize(("untrained", "found"), [("second.weight", 1), ("third.weight", 0)])
def test_the_cost_is_a_part_of_the_backwards_library_calls(make, untrained, found):
    head = {"compile_key": "k", "compile_id": "0/0"}
    call = {"stance": "compiled", "category": "gemm", "aot_id": "0_backward", "name": "aten::mm"}
    tables = make(
        untrained_weights=[{"name": untrained, "additions": 40}],
        graphs=[
            {**head, "kind": "dynamo_output", "text": CAPTURED},
            {**head, "kind": "aot_backward", "text": BACKWARD},
        ],
        matched_kernels=[{**call, "compile_id": "0/0", "ms": 4.0}],
        speedups=[{"eager_ms": 10.0, "compiled_ms": 10.0}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 10.0}],
    )
    findings = list(ind_untrained_weights.check(tables))
    assert len(findings) == found
    for finding in findings:
        assert finding.cost.ms_per_step == pytest.approx(4.0 * 96 / 256)
        assert finding.location.line == 9
        assert finding.snippet.text == "model.second.requires_grad_(False)"


def test_a_gpu_that_waits_for_the_host_gains_less(make):
    head = {"compile_key": "k", "compile_id": "0/0"}
    call = {"stance": "compiled", "category": "gemm", "aot_id": "0_backward", "name": "aten::mm"}
    waits = {"stance": "compiled", "clock": "device", "kind": "idle", "ms": 2.0}
    tables = make(
        untrained_weights=[{"name": "second.weight", "additions": 40}],
        graphs=[
            {**head, "kind": "dynamo_output", "text": CAPTURED},
            {**head, "kind": "aot_backward", "text": BACKWARD},
        ],
        matched_kernels=[{**call, "compile_id": "0/0", "ms": 4.0}],
        accounting=[{**waits, "category": "idle_launch_bound"}],
        speedups=[{"eager_ms": 10.0, "compiled_ms": 10.0}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 10.0}],
    )
    (finding,) = ind_untrained_weights.check(tables)
    assert finding.severity == "info"
    assert "waits 2.00 ms for the host" in finding.explanation


def test_a_starved_gpu_gains_the_waits_for_kernels_that_are_gone(make):
    """Of 10 launches the share of the backward's 4 goes, and the one that adds the gradient up."""
    head = {"compile_key": "k", "compile_id": "0/0"}
    call = {"stance": "compiled", "category": "gemm", "aot_id": "0_backward", "name": "aten::mm"}
    account = {"stance": "compiled", "clock": "device"}
    tables = make(
        untrained_weights=[{"name": "second.weight", "additions": 40}],
        graphs=[
            {**head, "kind": "dynamo_output", "text": CAPTURED},
            {**head, "kind": "aot_backward", "text": BACKWARD},
        ],
        matched_kernels=[{**call, "compile_id": "0/0", "ms": 1.0, "count": 4.0}],
        accounting=[
            {**account, "kind": "idle", "category": "idle_launch_bound", "ms": 6.0},
            {**account, "kind": "busy", "category": "gemm", "ms": 2.0},
        ],
        speedups=[{"eager_ms": 10.0, "compiled_ms": 10.0}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 10.0, "kernels": 10.0}],
    )
    (finding,) = ind_untrained_weights.check(tables)
    share = needless(BACKWARD, {2})[1]
    assert 0 < share < 1
    assert finding.cost.ms_per_step == pytest.approx((4 * share + 1) / 10 * 6.0)
    assert finding.cost.about.startswith("waits for launches")

"""What channels last would save, and why Inductor did not choose it."""

import pytest

from traceview.rules import ind_channels_last

GRAPH = """
    def forward(self, arg0_1: "Sym(s1)", arg1_1: "f32[2, 8, {size}, 64][{size}, 1, 1, 1]cuda:0", arg2_1: "f32[8, 8, 3, 3][72, 9, 3, 1]cuda:0"):
        convolution: "f32[2, 8, {size}, 62][1, 1, 1, 1]cuda:0" = torch.ops.aten.convolution.default(arg1_1, arg2_1, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
        return (convolution,)
"""  # noqa: E501 - as torch writes it


def found(make, size="s1", less=2.0, kernels=()):
    tables = make(
        matched_kernels=[
            {"stance": "compiled", "category": "convolution", "name": name, "ms": ms}
            | {"file": "/u/train.py", "line": 27, "count": 4.0}
            for name, ms in kernels
        ],
        shape_gains=[{"kind": "convolution", "way": "channels last", "base_ms": 5.0, "ms": less}],
        accounting=[{"stance": "compiled", "category": "convolution", "kind": "busy", "ms": 4.0}],
        graphs=[{"kind": "post_grad", "text": GRAPH.format(size=size)}],
        speedups=[{"eager_ms": 10.0, "compiled_ms": 10.0}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 10.0}],
    )
    return list(ind_channels_last.check(tables))


@pytest.mark.parametrize(
    ("size", "remedy"),
    [("s1", ("channels_last", "dynamic=False")), ("64", ("channels_last",))],
)
def test_symbolic_sizes_are_a_reason_that_can_be_taken_away(make, size, remedy):
    (finding,) = found(make, size)
    assert finding.cost.ms_per_step == pytest.approx(4.0 * 0.6)
    assert finding.remedy == remedy
    assert ("symbolic" in finding.explanation) is (size == "s1")


def test_a_format_that_gains_nothing_is_not_advised(make):
    assert found(make, less=4.9) == []


def test_kernels_that_transpose_count_where_forwards_alone_show_less(make):
    moved = [("nchwToNhwcKernel<bf16>", 2.0), ("nhwcToNchwKernel<bf16>", 1.5), ("fprop", 3.0)]
    (finding,) = found(make, kernels=moved)
    assert finding.cost.ms_per_step == pytest.approx(3.5)
    assert finding.confidence == "derived"
    assert [each.text for each in finding.evidence][1].startswith("nchwToNhwcKernel<bf16>: 2.00 ms")
    (finding,) = found(make, kernels=[("nchwToNhwcKernel<bf16>", 1.0), ("fprop", 3.0)])
    assert (finding.cost.ms_per_step, finding.confidence) == (pytest.approx(2.4), "measured")

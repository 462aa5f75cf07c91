"""Which look-ups are of rows that lie apart, and what storing the table by rows would save."""

import pytest

from traceview.rules import ind_strided_rows

LINE = "# File: /u/train.py:9 in forward, code: rows = table[at]"
GRAPH = """
    def forward(self, arg0_1: "f32[400000, 64]{strides}cpu", arg1_1: "i64[4096][1]cpu"):
        {line}
        index: "f32[4096, 64][64, 1]cpu" = torch.ops.aten.index.Tensor({called});  arg0_1 = None
        return (index,)
"""
GAIN = {"kind": "indexing", "way": "contiguous", "base_ms": 4.0, "ms": 1.0, "clock": "host"}
READ = {
    "stance": "eager", "group_id": 0, "category": "indexing", "file": "/u/train.py", "line": 9,
    "ms": 4.0, "name": "aten::index",
}  # fmt: skip


def found(make, strides="[1, 400000]", called="arg0_1, [arg1_1]", generated=6.0):
    text = GRAPH.format(strides=strides, line=LINE, called=called)
    wrote = {**READ, "stance": "compiled", "category": "generated_pointwise", "ms": generated}
    tables = make(
        shape_gains=[GAIN],
        graphs=[{"kind": "post_grad", "text": text}],
        matched_kernels=[READ, wrote],
        speedups=[{"eager_ms": 10.0, "compiled_ms": 10.0}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 10.0}],
    )
    return list(ind_strided_rows.check(tables))


@pytest.mark.parametrize(("generated", "saved"), [(6.0, 3.0), (2.0, 1.5)])
def test_the_saving_is_measured_and_no_more_than_the_generated_kernel_takes(make, generated, saved):
    (finding,) = found(make, generated=generated)
    assert finding.cost.ms_per_step == pytest.approx(saved)
    assert (finding.location.line, finding.confidence) == (9, "measured")


@pytest.mark.parametrize(
    ("strides", "called"),
    [
        ("[64, 1]", "arg0_1, [arg1_1]"),
        ("[1, 400000]", "arg0_1, [None, arg1_1]"),
        ("[s1, 1]", "arg0_1, [arg1_1]"),
    ],
)
def test_rows_that_lie_together_and_columns_are_not_reported(make, strides, called):
    assert found(make, strides, called) == []

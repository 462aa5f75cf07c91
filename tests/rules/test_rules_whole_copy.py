"""Which operators ask for a changed copy of an input."""

import pytest

from traceview.derive.facts.partial_writes import Update, changed_copies
from traceview.torchtext.fx import read_graph

GRAPH = """
    def forward(self, arg0_1: "f32[4000, 64][64, 1]cuda:0", arg1_1: "i64[{rows}][1]cuda:0", arg2_1: "f32[{rows}, 64][64, 1]cuda:0"):
        # File: /u/train.py:9 in forward, code: table = table.index_copy(0, at, rows)
        index_put: "f32[4000, 64][64, 1]cuda:0" = torch.ops.aten.index_put.default({into}, [arg1_1], arg2_1)
        {more}
        return (index_put,)
"""  # noqa: E501 - as torch writes it
BACK = 'copy_: "f32[4000, 64][64, 1]cuda:0" = torch.ops.aten.copy_.default(arg0_1, index_put)'


def found(rows=16, into="arg0_1", more="sin = torch.sin(arg2_1)"):
    return list(changed_copies(read_graph(GRAPH.format(rows=rows, into=into, more=more))))


def test_a_small_part_of_an_input_is_changed_in_a_copy_of_all():
    assert found() == [Update(256_000, 1_024_000, 1024, "/u/train.py:9")]


@pytest.mark.parametrize("how", [{"rows": 2000}, {"more": BACK}, {"into": "arg2_1"}])
def test_a_large_part_a_write_in_place_and_another_tensor_are_not(how):
    assert found(**how) == []

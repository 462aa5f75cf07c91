"""Which blocks of scores a score function of flex_attention masks."""

import pytest

from traceview.rules.ind_dense_flex_attention import Dense, dense_calls

GRAPH = """
class GraphModule(torch.nn.Module):
    def forward(self, L_q_: "f32[1, 2, {length}, 32][65536, 32768, 32, 1]cpu"):
        q: "f32[1, 2, {length}, 32][65536, 32768, 32, 1]cpu" = torch.sin(L_q_);  L_q_ = None
        score_mod_0 = self.score_mod_0
        mask_fn_0 = self.mask_fn_0
        flex_attention = torch.ops.higher_order.flex_attention(q, q, q, score_mod_0, (1, 1, child, child_1, None, None, {blocks}, mask_fn_0), 0.17, {{'BACKEND': 'AUTO'}}, (), ());  q = None
        getitem: "f32[1, 2, {length}, 32]cpu" = flex_attention[0];  flex_attention = None
        return (getitem,)

    class score_mod_0(torch.nn.Module):
        def forward(self, child: "f32[][]cpu", child_1: "i32[][]cpu", child_2: "i32[][]cpu", child_3: "i32[][]cpu", child_4: "i32[][]cpu"):
            # File: /w/model.py:8 in near, code: return torch.where(seen, score, -inf)
            {condition}
            where: "f32[][]cpu" = torch.where(seen, child, {other});  seen = child = None
            return where
"""  # noqa: E501 - as torch writes it
ALL = "1073741824, 1073741824"
CAUSAL = 'seen: "b8[][]cpu" = child_3 >= child_4'
NEAR = """near: "i32[][]cpu" = child_3 - child_4
            small: "b8[][]cpu" = near < 64
            after: "b8[][]cpu" = child_3 >= child_4
            seen: "b8[][]cpu" = small & after"""
WINDOW = """apart: "i32[][]cpu" = child_3 - child_4
            far: "i32[][]cpu" = apart.abs()
            other: "b8[][]cpu" = far > 64
            near: "b8[][]cpu" = ~other
            seen: "b8[][]cpu" = torch.logical_and(near, near)"""
OF_HEAD = 'seen: "b8[][]cpu" = child_2 >= child_4'


def found(condition, length=1024, blocks=ALL, other="-inf"):
    text = GRAPH.format(condition=condition, length=length, blocks=blocks, other=other)
    return list(dense_calls(text))


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        (CAUSAL, 36 / 64),
        (NEAR, 15 / 64),
        (CAUSAL.replace(">=", "<"), 36 / 64),
        (WINDOW, 22 / 64),
        (OF_HEAD, None),
    ],
)
def test_blocks_with_a_place_that_is_kept_are_counted(condition, kept):
    assert found(condition) == [Dense("/w/model.py:8", kept)]


def test_a_long_sequence_has_larger_blocks():
    ((_, kept),) = found(CAUSAL, length=65536)
    assert kept == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("more", [{"blocks": "128, 128"}, {"other": "0.0"}])
def test_a_block_mask_or_a_bias_is_nothing_to_find(more):
    assert found(CAUSAL, **more) == []


def test_a_symbolic_length_is_not_known():
    assert found(CAUSAL, length="s0") == [Dense("/w/model.py:8", None)]

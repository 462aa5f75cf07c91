"""Operators and lines of a traced graph's text."""

import pytest

from traceview.derive.origins.names import named_operators
from traceview.derive.origins.traced import operator_word, traced_operators

GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[8][1]cpu", L_w_: "f32[8][1]cpu"):
        l_x_ = L_x_

        # File: /home/me/s.py:3 in forward, code: y = 1 - x * w
        mul: "f32[8][1]cpu" = l_x_ * L_w_
        y: "f32[8][1]cpu" = 1 - mul;  mul = None

        # File: /home/me/s.py:4 in forward, code: y += x
        y += l_x_;  iadd: "f32[8][1]cpu" = y;  y = None
        linear = torch._C._nn.linear(iadd, L_w_, None)
        b = torch.ops.mylib.shift.default(linear)
        n = -b
        eps = 1e-05 + n
        half = n.half()

        # File: /x/site-packages/torch/nn/modules/normalization.py:9 in forward, code: return F.x()
        h = torch.nn.functional.layer_norm(half, (8,))
        getitem = h[0]
        return (getitem,)
"""


def test_every_node_has_the_word_of_its_operator_and_the_users_line():
    three, four = "/home/me/s.py:3", "/home/me/s.py:4"
    assert traced_operators(GRAPH) == [
        ("mul", three), ("sub", three), ("add", four), ("linear", four), ("shift", four),
        ("neg", four), ("add", four), ("to", four), ("layer_norm", None),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "    x = \n" * 999, "    a += ;  b = \n", "(" * 10_000])
def test_other_text_is_no_graph(text):
    assert traced_operators(text) == []


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("aten::add_", "add"), ("aten.add.Tensor", "add"), ("aten::rsub", "sub"),
        ("torch.ops.aten.mm.default", "mm"), ("mylib::shift_rows", "shift_rows"), ("gelu", "gelu"),
        ("aten::_to_copy", "_to_copy"), ("", ""),
    ],
)  # fmt: skip
def test_one_word_for_all_spellings_of_an_operator(name, word):
    assert operator_word(name) == word


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("triton_poi_fused_add_gelu_0", ["add", "gelu"]),
        ("cpp_fused_add_clamp_native_layer_norm_12", ["add", "clamp", "native_layer_norm"]),
        ("triton_red_fused__to_copy_add_3", ["_to_copy", "add"]),
        ("triton_poi_fused_add_mystery_0", []),
        ("triton_poi_fused_" + "add_" * 10 + "3", []),  # torch leaves out those after the tenth
        ("extern_kernels.mm", []),
        ("fused_" + "a_" * 100_000 + "0", []),
    ],
)
def test_operators_by_a_kernels_name(name, operators):
    known = {"add", "gelu", "clamp", "native_layer_norm", "_to_copy", "layer", "norm"}
    assert named_operators(name, known) == operators

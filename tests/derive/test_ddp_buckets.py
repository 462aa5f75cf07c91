"""What DDPOptimizer cut out of a graph."""

import pytest

from traceview.derive.compiler.passes import ddp_buckets
from traceview.tables import Tables, from_rows

TEXT = """class GraphModule(torch.nn.Module):
    def forward(self, x_1: "f32[16, 256]", l_self_parameters_weight_: "{dtype}[512, 256]", \
l_self_parameters_bias_: "{dtype}[512]", l_self_buffers_mean_: "f32[512]"):
        # File: /u/net.py:24 in forward, code: return x + self.up(x)
        linear: "f32[16, 512]" = torch._C._nn.linear(x_1, l_self_parameters_weight_, None)
        add: "f32[16, 512]" = x_1 + linear;  linear = None
        return add
"""


def buckets(*texts, **more):
    rows = [
        {
            "pass": "cold",
            "compile_key": "k",
            "attempt": 0,
            "kind": "ddp_split_child",
            "text": text,
            **more,
        }
        for text in texts
    ]
    return ddp_buckets(Tables({"graphs": from_rows("graphs", rows)})).to_dicts()


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("f32", 4), ("bf16", 2), ("f16", 2), ("f64", 8), ("f8e4m3fn", 1), ("Sym", None)],
)
def test_parameters_and_their_bytes(dtype, size):
    (row,) = buckets(TEXT.format(dtype=dtype))
    assert (row["parameters"], row["op_count"]) == (2, 2)
    assert row["parameter_bytes"] == (None if size is None else size * (512 * 256 + 512))


def test_pieces_are_numbered_in_their_order_and_anew_for_every_attempt():
    text = TEXT.format(dtype="f32")
    assert [row["bucket"] for row in buckets(text, text, text)] == [0, 1, 2]


def test_a_text_without_a_signature_tells_nothing_of_parameters():
    (row,) = buckets("[cut here: the text goes on]")
    assert (row["parameters"], row["parameter_bytes"], row["op_count"]) == (None, None, 0)


def test_other_graphs_are_none():
    assert buckets(TEXT.format(dtype="f32"), kind="ddp_split") == []

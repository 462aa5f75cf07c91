"""Attention in float32 of values, or for a result, of 16 bits."""

import pytest

from traceview.rules import ind_wide_attention

WIDE, NARROW = "[2, 4, 64, 16]cuda:0", "bf16[2, 4, 64, 16]cuda:0"
GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_q_: "{narrow}", L_v_: "{value}"):
        l_q_ = L_q_
        l_v_ = L_v_
        # File: /u/model.py:5 in forward, code: wide = x.float()
        wide: "f32{size}" = l_q_.float();  l_q_ = None

        # File: /u/model.py:6 in forward, code: return wide * self.scale
        q: "f32{size}" = wide * 2.0;  wide = None

        # File: /u/model.py:8 in forward, code: v = v.transpose(1, 2).to(q.dtype)
        transpose: "{value}" = l_v_.transpose(1, 2);  l_v_ = None
        to: "f32{size}" = transpose.to(torch.float32);  transpose = None
        v: "f32{size}" = to.contiguous();  to = None

        # File: /u/model.py:9 in forward, code: mixed = F.scaled_dot_product_attention(q, q, v)
        mixed: "{mixed}" = torch._C._nn.scaled_dot_product_attention({arguments});  q = v = None

        # File: /u/model.py:10 in forward, code: return mixed.transpose(1, 2).to(x.dtype)
        transpose_1: "f32{size}" = mixed.transpose(1, 2)
        to_1: "{result}" = transpose_1.to({result});  transpose_1 = None
        return ({returned},)
"""
KERNEL = "fmha_cutlass{}_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)"


def found(make, *, ms=0.2, kernels="F", more="", **words):
    """Attention of 1 ms in a step of 2 ms; 0.2 ms in bfloat16."""
    texts = {"narrow": NARROW, "value": NARROW, "size": WIDE, "mixed": f"f32{WIDE}"}
    texts |= {"arguments": "q, q, v", "result": NARROW, "returned": "to_1"}
    text = GRAPH.format(**texts | words)
    group = {"stance": "compiled", "category": "attention", "ms": 1.0, "clock": "device"}
    gain = {"kind": "attention", "way": "bfloat16", "dtype": "float32", "clock": "device"}
    texts = [text, *([text.replace(*more)] if more else [])]
    tables = make(
        graphs=[{"compile_key": "k", "kind": "dynamo_output", "text": text} for text in texts],
        kernel_groups=[{**group, "name": KERNEL.format(each)} for each in kernels],
        shape_gains=[{**gain, "shapes": 1, "base_ms": 1.0, "ms": ms}],
        speedups=[{"eager_ms": 2.0, "compiled_ms": 2.0}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 2.0}],
    )
    return list(ind_wide_attention.check(tables))


def test_values_of_16_bits(make):
    (finding,) = found(make)
    assert "model.py:9 runs in float32, though its values are bfloat16" in finding.title
    assert finding.cost.ms_per_step == pytest.approx(0.8)
    assert [each.line for each in (finding.location, *finding.also_at)] == [9, 8, 5]
    assert finding.snippet.text == "q, k = q.to(v.dtype), k.to(v.dtype)"
    assert "backward" not in finding.explanation


@pytest.mark.parametrize(
    "arguments", ["query = q, key = q, value = v", "q, q, v, is_causal = True"]
)
def test_other_arguments(make, arguments):
    assert len(found(make, arguments=arguments)) == 1


def test_a_result_of_16_bits(make):
    result = NARROW.replace("bf16", "f16")
    (finding,) = found(make, value=f"f32{WIDE}", result=result)
    assert "though its result becomes float16" in finding.title
    assert [each.line for each in (finding.location, *finding.also_at)] == [9, 10, 5]
    assert finding.snippet.text == "q, k, v = (each.to(torch.float16) for each in (q, k, v))"


def test_the_backward_is_not_counted(make):
    (finding,) = found(make, kernels="BF")
    assert finding.cost.ms_per_step == pytest.approx(0.8)
    assert "The backward gains as well" in finding.explanation


@pytest.mark.parametrize(
    "other",
    [
        {"value": f"f32{WIDE}", "result": f"f32{WIDE}"},  # all of it is float32
        {"value": f"f32{WIDE}", "returned": "to_1, mixed"},  # the result is used as it is, too
        {"mixed": NARROW},  # autocast
        {"arguments": "q, q, to_2"},
        {"ms": 0.95},
        {"kernels": ""},
        {"kernels": "B"},
        {"more": (f"bf16{WIDE}", f"f32{WIDE}")},  # the time is that of other attention as well
    ],
)
def test_without_16_bits_or_a_gain_nothing_is_reported(make, other):
    assert found(make, **other) == []

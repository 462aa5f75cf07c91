"""Products whose rows no fast kernel can load at once."""

import pytest

from traceview.rules import ind_unaligned_product

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, x: "bf16[512, 1024]{steps}cuda:0", w: "bf16[1024, 256][256, 1]cuda:0"):
        # File: /u/tower.py:28 in forward, code: h = self.inp(x)
        mm: "bf16[512, 256][256, 1]cuda:0" = torch.ops.aten.mm.default(x, w)
        return (mm,)
"""
STACK = (
    '[{"file": "/u/tower.py", "line": 60, "function": "main"}, '
    '{"file": "/u/tower.py", "line": 27, "function": "forward"}]'
)


def found(make, steps="[1025, 1]", aligned=1.0):
    compiled = {"compile_key": "k", "compile_id": "0/0"}
    tables = make(
        shape_gains=[{"kind": "gemm", "way": "aligned", "base_ms": 4.0, "ms": aligned}],
        accounting=[{"stance": "compiled", "category": "gemm", "kind": "busy", "ms": 4.0}],
        compiles=[{**compiled, "stack": STACK}],
        graphs=[{**compiled, "kind": "post_grad", "text": GRAPH.format(steps=steps)}],
        speedups=[{"eager_ms": 10.0, "compiled_ms": 10.0}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 10.0}],
    )
    return list(ind_unaligned_product.check(tables))


def test_a_slice_is_copied_where_the_call_is_made(make):
    (finding,) = found(make)
    assert finding.cost.ms_per_step == pytest.approx(3.0)
    assert [finding.location.line, *(each.line for each in finding.also_at)] == [60, 28]
    assert "Copy the slice once" in finding.what_to_do


def test_a_size_that_is_no_multiple_is_rounded_up(make):
    text = GRAPH.replace("512, 1024]", "512, 1025]").replace("[1024, 256]", "[1025, 256]")
    tables = make(
        compiles=[{"compile_key": "k", "compile_id": "0/0", "stack": STACK}],
        graphs=[{"compile_key": "k", "kind": "post_grad", "text": text.format(steps="[1025, 1]")}],
    )
    places, gaps = ind_unaligned_product._places(tables)
    assert ([each.line for each in places], gaps) == ([28], False)


def test_what_gains_nothing_is_not_told(make):
    assert found(make, aligned=3.9) == []


@pytest.mark.parametrize("steps", ["[1032, 1]", "[1, 512]"])
def test_rows_at_multiples_of_16_bytes_are_no_place(make, steps):
    (finding,) = found(make, steps)
    assert finding.location is None

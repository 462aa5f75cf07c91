"""What graphs prove: work that is gone, forward nodes that the backward graph computes again."""

from __future__ import annotations

import pytest
from effect_steps import FILE, effects, graph, kernel

from traceview.derive.effects.graphs import GraphFacts
from traceview.tables import from_rows

TRACED = f"""
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[8][1]cuda:0"):
        l_x_ = L_x_

        # File: {FILE}:3 in model, code: dead = torch.exp(x)
        exp: "f32[8][1]cuda:0" = torch.exp(l_x_);  exp = None

        # File: {FILE}:4 in model, code: a = torch.cos(full) * torch.sin(x)
        full: "f32[8][1]cuda:0" = torch.full((8,), 0.5)
        cos: "f32[8][1]cuda:0" = torch.cos(full);  full = None
        sin: "f32[8][1]cuda:0" = torch.sin(l_x_);  l_x_ = None
        a: "f32[8][1]cuda:0" = cos * sin;  cos = sin = None
        return (a,)
"""
CAPTURED = f"""
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[8][1]cuda:0"):
        # File: {FILE}:4 in model, code: a = torch.cos(full) * torch.sin(x)
        full: "f32[8][1]cuda:0" = torch.ops.aten.full.default([8], 0.5)
        cos: "f32[8][1]cuda:0" = torch.ops.aten.cos.default(full);  full = None
        sin: "f32[8][1]cuda:0" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
        mul: "f32[8][1]cuda:0" = torch.ops.aten.mul.Tensor(cos, sin);  cos = sin = None
        return (mul,)
"""
LOWERED = f"""
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[8][1]cuda:0"):
        # File: {FILE}:4 in model, code: a = torch.cos(full) * torch.sin(x)
        full: "f32[8][1]cuda:0" = torch.ops.aten.full.default([8], 0.5)
        cos: "f32[8][1]cuda:0" = torch.ops.aten.cos.default(full);  full = cos = None
        full_default: "f32[8][1]cuda:0" = torch.ops.aten.full.default([8], 0.87)
        sin: "f32[8][1]cuda:0" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
        mul: "f32[8][1]cuda:0" = torch.ops.aten.mul.Tensor(full_default, sin);  sin = None
        return (mul,)
"""
GRAPHS = [
    graph("dynamo_output", TRACED),
    graph("aot_inference", CAPTURED),
    graph("post_grad", LOWERED),
]


def gone(graphs, line, operator, times=1, file=FILE, backward=False):
    facts = GraphFacts(from_rows("graphs", graphs))
    return facts.gone((file, line), operator, times, backward=backward)


def test_a_traced_line_without_any_node_is_dead_code():
    assert gone(GRAPHS, 3, "aten::exp") == 1.0


def test_constant_folding_takes_operations_away_though_their_nodes_still_stand_there():
    assert gone(GRAPHS, 4, "aten::cos") == 1.0
    assert gone(GRAPHS, 4, "aten::sin") == 0.0
    assert gone(GRAPHS, 4, "aten::mul") == 0.0


def test_a_line_that_was_never_traced_says_nothing():
    assert gone(GRAPHS, 9, "aten::exp") == 0.0
    assert gone(GRAPHS, 3, "aten::exp", file="/job/other.py") == 0.0
    assert gone(GRAPHS, None, "aten::exp") == 0.0


def test_an_operator_that_ran_less_often_than_its_nodes_is_a_piece_of_another():
    assert gone(GRAPHS, 4, "aten::cos", times=0.5) == 0.0
    assert gone(GRAPHS, 4, "aten::cos", times=3.0) == 1.0  # three calls per step


def test_an_operation_that_became_another_one_is_not_gone():
    replaced = LOWERED.replace("aten.sin.default", "aten.sinh.default")
    assert gone([*GRAPHS[:2], graph("post_grad", replaced)], 4, "aten::sin") == 0.0
    assert gone([*GRAPHS[:2], graph("post_grad", replaced)], 4, "aten::cos") == 0.0


@pytest.mark.parametrize("missing", ["aot_inference", "post_grad"])
def test_without_both_ends_of_lowering_nothing_is_claimed(missing):
    assert gone([row for row in GRAPHS if row["kind"] != missing], 3, "aten::exp") == 0.0


def test_lines_inside_a_higher_order_operator_are_not_taken_for_dead_code():
    traced = TRACED + "        b = torch.ops.higher_order.autograd_function_apply(f, a)\n"
    assert gone([graph("dynamo_output", traced), *GRAPHS[1:]], 3, "aten::exp") == 0.0


def test_less_work_in_the_waterfall():
    found, rows = effects(
        [
            kernel(0, "eager", "exp_kernel", 0.4, cpu_op="aten::exp", file=FILE, line=3),
            kernel(1, "eager", "cos_kernel", 0.2, cpu_op="aten::cos", file=FILE, line=4),
            kernel(1, "eager", "mul_kernel", 0.3, cpu_op="aten::mul", file=FILE, line=4),
            kernel(1, "compiled", "triton_poi_0", 0.1, "generated_pointwise"),
        ],
        groups=[{"group_id": 0, "kind": "eager_only"}, {"group_id": 1, "kind": "fused"}],
        graphs=GRAPHS,
    )
    assert found["less_work"]["ms"] == pytest.approx(-0.6)
    assert found["fusion"]["ms"] == pytest.approx(-0.2)
    assert [row["line"] for row in rows if row["effect"] == "less_work"] == [3, 4]


FORWARD = """
class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[8][1]cuda:0"):
        mul: "f32[8][1]cuda:0" = torch.ops.aten.mul.Tensor(primals_1, 2)
        view: "f32[8][1]cuda:0" = torch.ops.aten.view.default(mul, [8])
        erf: "f32[8][1]cuda:0" = torch.ops.aten.erf.default(view)
        return (erf, primals_1)
"""
BACKWARD = """
class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[8][1]cuda:0", tangents_1: "f32[8][1]cuda:0"):
        mul: "f32[8][1]cuda:0" = torch.ops.aten.mul.Tensor(primals_1, 2)
        view: "f32[8][1]cuda:0" = torch.ops.aten.view.default(mul, [8])
        exp: "f32[8][1]cuda:0" = torch.ops.aten.exp.default(view)
        mul_1: "f32[8][1]cuda:0" = torch.ops.aten.mul.Tensor(exp, tangents_1)
        return (mul_1,)
"""
PARTS = [graph("aot_forward", FORWARD), graph("aot_backward", BACKWARD)]


def backward_kernel(nodes, ms, group=0):
    return kernel(
        group, "compiled", f"triton_{'_'.join(nodes)}", ms, "generated_pointwise",
        source_nodes=nodes, compile_id="0/0", aot_id="0_backward",
    )  # fmt: skip


def test_a_kernel_that_only_computes_forward_nodes_again_is_recompute():
    kernels = [
        kernel(0, "eager", "mul_kernel", 0.3),
        backward_kernel(["mul", "view"], 0.1),
        backward_kernel(["mul", "exp", "mul_1"], 0.2),
    ]
    groups = [{"group_id": 0, "kind": "fused"}]
    found, _ = effects(kernels, groups=groups, graphs=PARTS)
    assert found["recompute"]["ms"] == pytest.approx(0.1)
    assert found["recompute"]["eager_ms"] is None
    assert found["fusion"]["ms"] == pytest.approx(-0.1)


def test_under_checkpointing_eager_recomputes_too_and_nothing_is_claimed():
    traced = graph("dynamo_output", "a = torch.ops.higher_order.tag_activation_checkpoint(x)")
    kernels = [kernel(0, "eager", "mul_kernel", 0.3), backward_kernel(["mul"], 0.1)]
    groups = [{"group_id": 0, "kind": "fused"}]
    found, _ = effects(kernels, groups=groups, graphs=[*PARTS, traced])
    assert "recompute" not in found


def lines(*nodes):
    """A graph's body: (line, name, operation with its arguments)."""
    return "\n".join(
        f"        # File: {FILE}:{line} in model, code: x\n        {name} = torch.ops.{call}"
        for line, name, call in nodes
    )


def function(inputs, body, result):
    signature = f"class G(torch.nn.Module):\n    def forward(self, {inputs}):\n"
    return f"{signature}{body}\n        return ({result},)\n"


def test_a_product_computed_once_for_two_lines_went_in_the_forward_alone():
    """The sum of both gradients is merged into a product: neither of the two went."""
    forward = [(5, "mm", "aten.mm.default(a, w)"), (6, "mm_1", "aten.mm.default(a, w)")]
    backward = [
        (6, "mm_2", "aten.mm.default(a, tangents_1)"),
        (5, "mm_3", "aten.mm.default(w, tangents_1)"),
        (5, "add", "aten.add.Tensor(mm_2, mm_3)"),
    ]
    merged = "\n        # No stacktrace found for following nodes\n"
    merged += "        addmm = torch.ops.aten.addmm.default(mm_2, w, tangents_1)"
    joint = function("a, w, tangents_1", lines(*forward, *backward), "mm, mm_1, add")
    graphs = [
        graph("dynamo_output", function("a, w", lines(*forward), "mm, mm_1")),
        graph("aot_joint", joint),
        graph("post_grad", function("a, w", lines(forward[0]), "mm")),
        graph("post_grad", function("a, tangents_1", lines(backward[0]) + merged, "addmm")),
    ]
    assert gone(graphs, 6, "aten::mm") == 1.0
    assert gone(graphs, 5, "aten::mm") == 0.0
    assert gone(graphs, 5, "aten::mm", backward=True) == 0.0
    assert gone(graphs, 6, "aten::mm", backward=True) == 0.0
    assert gone(graphs, 5, "aten::add_", backward=True) == 0.0


def test_a_recomputed_node_may_go_by_its_name_in_the_traced_graph():
    traced = function("x", lines((3, "scaled", "aten.mul.Tensor(x, 2)")), "scaled")
    facts = GraphFacts(from_rows("graphs", [*PARTS, graph("dynamo_output", traced)]))
    assert facts.recomputed("0/0", "0_backward", frozenset({"scaled"}))
    assert not facts.recomputed("0/0", "0_backward", frozenset({"scaled", "mul_1"}))
    assert not facts.recomputed("0/0", "0_forward", frozenset({"scaled"}))
    clash = function("x", lines((3, "exp", "aten.mul.Tensor(x, 2)")), "exp")
    facts = GraphFacts(from_rows("graphs", [*PARTS, graph("dynamo_output", clash)]))
    assert not facts.recomputed("0/0", "0_backward", frozenset({"exp"}))

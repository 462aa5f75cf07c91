"""``bisect_s``: from a callable that is wrong to its operator, in the script's own process."""

from importlib.util import find_spec

import pytest
from child_runs import run_child, write_script
from test_child_compare import STATE

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs torch"),
]

FAULTS = """
    import torch
    from torch import nn
    from torch._inductor.decomposition import decompositions

    def gelu_backward(grad, x, approximate="none"):
        return grad * 0.5

    decompositions[torch.ops.aten.gelu_backward.default] = gelu_backward

    @torch.library.custom_op("shop::mark", mutates_args=())
    def mark(rows: torch.Tensor) -> torch.Tensor:
        rows[0] = 1.0
        return rows * 2

    @mark.register_fake
    def _(rows):
        return torch.empty_like(rows)

    def no_copies(gm, _inputs):
        for node in list(gm.graph.nodes):
            if node.op == "call_method" and node.target == "clone":
                node.replace_all_uses_with(node.args[0])
                gm.graph.erase_node(node)
        gm.recompile()
        return gm

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

        def forward(self, x):
            hidden = self.first(x).sin()
            hidden = nn.functional.gelu(hidden)
            return self.last(hidden)

    def marked(x):
        y = x.cos() + 1
        torch._dynamo.graph_break()
        y = y * 3
        mark(y)
        return y * 2

    def copied(x):
        y = x + 1
        z = y.clone()
        z.mul_(2)
        return y + z

    def captured(x):
        y = x.exp()
        return y.relu() if torch.compiler.is_compiling() else y.neg()

    def right(x):
        return x.sigmoid() * 2

    every = {
        Net(): "aot_eager_decomp_partition", marked: "aot_eager", copied: no_copies,
        captured: "aot_eager", right: "aot_eager",
    }
    compiled = [torch.compile(call, backend=backend) for call, backend in every.items()]
    for _ in range(12):
        for call in compiled:
            call(torch.randn(6, 4))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    script = write_script(tmp_path_factory.mktemp("faults"), FAULTS)
    return run_child(script, compare_outputs=True, bisect_s=100.0, run_to_end=True)


def fault(run, name):
    names = {event["region_id"]: event["name"] for event in run.of("region")}
    return next(e for e in run.of("output_fault") if names[e["region_id"]] == name)


def line(text):
    return next(n for n, each in enumerate(FAULTS.splitlines(), 1) if text in each)


def test_a_decomposition_that_is_wrong_in_the_backward(run):
    found = fault(run, "Net")
    assert (found["operator"], found["operators"]) == ("aten.gelu_backward", ["aten.gelu"])
    assert found["line"] == line("hidden = nn.functional.gelu(hidden)")
    assert (found["part"], found["part_name"]) == ("decomposition", "aten.gelu_backward")
    assert (found["part_line"], found["graph"]) == (line("def gelu_backward"), "backward")
    assert "decompositions.pop(torch.ops.aten.gelu_backward" in found["remedies"][0]
    assert found["compiled"] != pytest.approx(found["exact"], rel=1e-3)
    assert found["eager"] == pytest.approx(found["exact"], rel=1e-3)
    assert found["script"] is None
    assert "your own (script.py:" in found["script_why"]


def test_an_operator_in_the_second_graph_that_declares_too_little(run):
    found = fault(run, "marked")
    assert (found["operator"], found["part"]) == ("shop.mark", "custom operator")
    assert found["line"] == line("        mark(y)")
    assert "writes into its argument rows" in found["part_name"]


def test_a_backend_of_the_users_own(run):
    found = fault(run, "copied")
    assert (found["operator"], found["part"]) == ("aten.clone", "backend")
    assert (found["line"], found["part_line"]) == (line("y.clone()"), line("def no_copies"))


def test_what_dynamo_captures(run):
    found = fault(run, "captured")
    assert (found["operator"], found["part"]) == ("aten.relu", "capture")
    assert found["line"] == line("y.relu()")


def test_only_what_is_wrong_is_followed(run):
    assert run.returncode == 0, run.err
    assert len(run.of("output_fault")) == 4
    assert all(event["compared"] for event in run.of("output_trial"))


def test_nothing_of_the_scripts_state_is_changed(tmp_path):
    script = write_script(tmp_path, STATE)
    run = run_child(script, compare_outputs=True, bisect_s=60.0, run_to_end=True)
    assert run.returncode == 0, run.err
    last = run.out.splitlines()[-2:]
    assert last == ["same True True torch.float32", "graph True"]
    (found,) = run.of("output_fault")
    assert (found["operator"], found["graph"]) == ("aten.mul.Tensor", "backward")


def test_what_the_budget_does_not_reach_is_said(tmp_path):
    script = write_script(tmp_path, FAULTS)
    run = run_child(script, compare_outputs=True, bisect_s=1e-6, run_to_end=True)
    assert len(run.of("output_fault")) == 4
    for found in run.of("output_fault"):
        assert found["operator"] is None
        assert found["why"] == "it was not begun, the budget was used up"

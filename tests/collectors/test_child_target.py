"""``--compile``: what it names is compiled, and the script's objects stay what they are."""

from __future__ import annotations

import pytest
from child_runs import run_child, write_script

pytestmark = pytest.mark.live

MODEL = """
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(8, 8)

        def forward(self, x):
            return torch.relu(self.inner(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(Block(), Block())

        def forward(self, x):
            return self.blocks(x)

    def pointwise(x):
        return torch.sin(x) + 1

    alias = pointwise
"""
LOOP = """
    import pickle
    import model as m
    from model import pointwise, torch

    net = m.Net()
    loss = torch.nn.MSELoss()
    seen = []

    def note(*_):
        seen.append(1)

    net.register_forward_hook(note)
    x = torch.randn(2, 8)
    for _ in range({calls}):
        y = loss(net(x), pointwise(x))
    print(type(net) is m.Net, list(net.state_dict())[0], len(seen) == {calls})
    print(pickle.loads(pickle.dumps(pointwise)) is pointwise, m.alias is pointwise)
    print(type(pickle.loads(pickle.dumps(net))).__name__)
"""
OWN = LOOP.replace("loss =", "net.compile(backend='eager'); loss =")
SAME = "True blocks.0.inner.weight True\nTrue True\nNet\n"


@pytest.fixture
def run(tmp_path):
    def start(asked, loop=LOOP, calls=30):
        write_script(tmp_path, MODEL, "model.py")
        script = write_script(tmp_path, loop.format(calls=calls))
        options = {"backend": "eager"}
        return run_child(
            script,
            compile_target=asked,
            compile_options=options,
            run_to_end=True,
            blocks=1,
            steps=2,
        )

    return start


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("auto", {"kind": "module", "name": "Net", "target": "__main__:net", "made_line": 6}),
        ("__main__:net.blocks[1]", {"kind": "module", "name": "Block", "made_line": 16}),
        ("script.py:net", {"kind": "module", "name": "Net", "made_line": 6}),
        ("model.Block", {"kind": "class", "name": "Block", "instances": 2, "made_line": 16}),
        ("model.pointwise", {"kind": "function", "name": "pointwise", "made_line": 21}),
    ],
)
def test_it_is_compiled_and_stays_what_it_is(run, asked, expected):
    result = run(asked)
    (target,) = result.of("target")
    assert target["status"] == "compiled", target
    assert {name: target[name] for name in expected} == expected
    assert result.out == SAME, result.err
    regions = result.of("region")
    assert len(regions) == expected.get("instances", 1)
    assert (regions[0]["call_line"], regions[0]["backend"]) == (target["made_line"], "eager")
    assert result.of("compile"), "Dynamo compiled it"
    assert {row[0] for _, row in result.rows("calls")}, "and its calls are counted"
    assert not result.of("note")


def test_what_takes_most_is_written_where_nothing_was_asked(run):
    result = run(None)
    assert result.out == SAME
    first, second = result.of("target")
    assert (first["status"], first["asked"], first["target"]) == ("seen", None, "__main__:net")
    assert second["target"] == "__main__:loss"
    assert first["period_ms"] > first["forward_ms"] > 0
    assert not result.of("region")


@pytest.mark.parametrize(
    ("asked", "loop", "status"),
    [
        ("model.pointwse", LOOP, {"status": "not_found", "near": ["pointwise"]}),
        ("model.torch", LOOP, {"status": "unsupported", "why": "a module"}),
        ("auto", OWN, {"status": "script_compiles"}),
        ("__main__:net", OWN, {"status": "compiled_already"}),
        ("model.Block", "import model", {"status": "not_called"}),
    ],
)  # fmt: skip
def test_a_target_that_cannot_be_compiled(run, asked, loop, status):
    result = run(asked, loop)
    assert result.returncode == 0, result.err
    (target,) = result.of("target")
    assert {name: target[name] for name in status} == status


def test_too_few_calls_to_choose(run):
    result = run("auto", calls=3)
    asked, seen, _ = result.of("target")
    assert (asked["status"], asked["calls"], seen["status"]) == ("too_few_calls", 6, "seen")


LONG = """
    import torch

    @torch.compile(backend="eager")
    def step(x):
        return x + 1

    for number in range(400):
        step(torch.zeros(2))
    print(number)
"""


def test_a_job_is_attached_to_for_a_while(tmp_path):
    script = write_script(tmp_path, LONG)
    result = run_child(
        script, after_steps=100, stop_after_steps=160, run_to_end=True, blocks=50, steps=2
    )
    assert (result.returncode, result.out) == (0, "399\n"), result.err
    (steady,), (done,) = result.of("steady"), result.of("done")
    assert 100 <= steady["step"] <= 110
    assert (done["step"], done["stopping"], done["complete"]) == (160, False, False)
    assert min(block["first_step"] for block in result.of("block")) > 100
    watched = [row[1] for _, row in result.rows("calls") if row[1] > 0]
    assert watched, "steps were watched"
    assert 100 <= min(watched) <= max(watched) <= 160, "and none before or after"
    assert result.of("end")[0]["steps_seen"] == 400

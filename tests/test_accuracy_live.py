"""``traceview accuracy`` of two processes: same and different scripts, seeds, ranks, steps."""

import json
import subprocess
from importlib.util import find_spec

import pytest
from cli_runs import Cli, command, served

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs torch"),
]

#: Its backward is wrong where it is compiled.
SCRIPT = """
import os
import torch
from torch import nn

class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sigmoid()
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        gate = x.sigmoid()
        return grad * gate * (1 - gate) * (2 if WRONG and torch.compiler.is_compiling() else 1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        hidden = Gate.apply(self.first(x))
        hidden = hidden * SCALE
        return self.last(hidden)

WRONG, SCALE, SEED = 0, 1.0, 0
torch.manual_seed(SEED)
net = Net()
compiled = torch.compile(net, backend="aot_eager")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(100):
    optimizer.zero_grad()
    loss = compiled(torch.randn(32, 8)).square().mean()
    loss.backward()
    optimizer.step()
print("ended by itself")
"""


def accuracy(folder, name, *options, **changed):
    """Exit code and output of ``traceview accuracy``; the run is in the folder ``name``."""
    text = SCRIPT
    values = {"WRONG": 0, "SCALE": 1.0, "SEED": 0} | changed
    text = text.replace(
        "WRONG, SCALE, SEED = 0, 1.0, 0", "; ".join(f"{k} = {v}" for k, v in values.items())
    )
    (folder / "train.py").write_text(text)
    done = served("accuracy", "-o", folder / name, *options, folder / "train.py", cwd=folder)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def cli(monkeypatch, capfd):
    return Cli(monkeypatch, capfd)


def line_of(text):
    return SCRIPT.splitlines().index(text) + 1


def test_two_processes(tmp_path, cli):
    """The same script agrees; an operator that differs, other seeds and wrong code are named."""
    assert accuracy(tmp_path, "a")[0] == 0
    assert accuracy(tmp_path, "b")[0] == 0
    cli("accuracy", "--json", tmp_path / "a", tmp_path / "b")
    answer = json.loads(cli.out)
    (one,) = answer["callables"]
    assert (cli.code, answer["verdict"], answer["not_compared"]) == (0, "agree", [])
    assert (one["name"], one["inputs"]) == ("Net", "equal")
    assert one["operators"] > 8

    accuracy(tmp_path, "scaled", SCALE=1.01)
    cli("accuracy", "--json", tmp_path / "a", tmp_path / "scaled")
    answer = json.loads(cli.out)
    first = answer["differences"][0]
    assert (cli.code, first["operator"], first["direction"]) == (1, "aten.mul.Tensor", "forward")
    assert first["location"]["line"] == line_of("        hidden = hidden * SCALE")
    assert first["relative_error"] == pytest.approx(0.01, rel=0.1)

    accuracy(tmp_path, "seeded", SEED=1)
    cli("accuracy", tmp_path / "a", tmp_path / "seeded")
    assert (cli.code, "INPUTS DIFFER" in cli.out, "First" in cli.out) == (1, True, False)

    code, out, _ = accuracy(tmp_path, "wrong", "--bisect", WRONG=1)
    assert code == 1, out
    cli("accuracy", "--json", tmp_path / "a", tmp_path / "wrong")
    answer = json.loads(cli.out)
    assert (cli.code, answer["callables"][0]["first"]) == (1, None)
    wrong = {row["name"]: row for row in answer["differences"]}
    assert wrong.keys() == {"gradient of weight first.weight", "gradient of weight first.bias"}
    row = wrong["gradient of weight first.weight"]
    assert row["sides"] == "eager of A, compiled of B"
    assert (row["operator"], row["direction"]) == ("aten.mul.Tensor", "backward")
    assert [fault["side"] for fault in answer["faults"]] == ["B"]


def test_training_steps(tmp_path):
    code, out, err = accuracy(tmp_path, "right", "--steps", "5")
    assert (code, out.splitlines()[0]) == (0, "The recordings agree."), err
    assert "training steps: inputs are equal, 5 steps compared" in out
    assert "ended by itself" not in out + err
    code, out, err = accuracy(tmp_path, "wrong", "--steps", "5", "--json", WRONG=1)
    answer = json.loads(out)
    assert (code, answer["differences"][0]["name"]) == (1, "loss of step 2"), err
    names = {row["name"] for row in answer["differences"]}
    assert "first.weight after step 5" in names
    assert answer["pairs"] == [{"a": "eager", "b": "compiled"}]
    code, out, _ = accuracy(tmp_path, "unseeded", "--steps", "3", SEED="os.getpid()")
    assert (code, out.splitlines()[0]) == (4, "Nothing was compared.")
    assert "excluded: the data differ" in out or "excluded: the weights differ" in out


STALE = """
import torch

SCALE = [1.0]

@torch._dynamo.assume_constant_result
def scale():
    return SCALE[0]

@torch.compile(backend="eager")
def f(x):
    return x * scale()

for step in range(100):
    f(torch.ones(3))
    SCALE[0] += 1.0
"""


def test_code_that_was_right_when_it_was_compiled(tmp_path):
    (tmp_path / "stale.py").write_text(STALE)
    words = ("accuracy", "--json", "-o", tmp_path / "out", tmp_path / "stale.py")
    done = subprocess.run(command(*words), capture_output=True, check=False, timeout=300)
    answer = json.loads(done.stdout)
    (*_, difference), (fault,) = answer["differences"], answer["faults"]
    assert (done.returncode, difference["stage"], difference["operator"]) == (1, "script", "scale")
    assert (fault["part"], fault["part_location"]["line"]) == ("constant", 6)


RANKS = """
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        x = self.linear(x)
        return x * (1.5 if dist.get_rank() else 1.0)

compiled = torch.compile(Net(), backend="aot_eager")
for _ in range(40):
    compiled(torch.randn(8, 4)).sum().backward()
"""


def test_ranks_of_one_job(tmp_path):
    (tmp_path / "train.py").write_text(RANKS)
    words = ("accuracy", "--json", "--nproc-per-node", 2, "-o", tmp_path / "out")
    done = subprocess.run(
        command(*words, tmp_path / "train.py"), capture_output=True, check=False, timeout=300
    )
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["pairs"]) == (1, [{"a": "rank 0", "b": "rank 1"}]), done.stderr
    first = answer["differences"][0]
    assert (first["operator"], first["name"]) == ("aten.mul.Tensor", "aten.mul.Tensor")
    assert answer["environments"][0] == {"name": "rank", "a": 0, "b": 1, "pair": 0}

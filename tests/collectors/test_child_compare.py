"""``compare_outputs``: one call of each compiled callable run again, on copies, and compared."""

from importlib.util import find_spec

import pytest
from child_runs import run_child, write_script

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs torch"),
]

HOSTILE = """
    import dataclasses, functools, threading
    import torch
    from torch import nn

    class NoCopy(nn.Module):
        def __init__(self):
            super().__init__()
            self.lock = threading.Lock()

        def forward(self, x):
            return x * 2

    @dataclasses.dataclass
    class Result:
        logits: torch.Tensor
        name: str
        more: dict

    class Rich(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.norm = nn.BatchNorm1d(4)

        def forward(self, x):
            y = self.norm(self.linear(x))
            more = {"nan": y * float("nan"), "none": None, "ids": y.argmax(-1)}
            return Result(torch.view_as_complex(y.reshape(-1, 2, 2)), "rich", more)

    class OwnPrecision(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 4))

        def forward(self, x):
            return torch.mm(x.to(torch.float32), self.weight)

    model = nn.Linear(4, 4)
    total = torch.zeros(4)

    def helper(x):
        return model(x) * 2

    def closes_over(x):
        return helper(x).sum()

    def writes(x):
        total.add_(1)
        x.mul_(2)
        return x + total

    class Trainer:
        def __init__(self):
            self.net = nn.Linear(4, 1)

        def step(self, x):
            print("in the step")
            return self.net(x).square().mean()

    every = [NoCopy(), Rich(), OwnPrecision(), closes_over, writes, Trainer().step,
             functools.partial(torch.add, torch.ones(4), alpha=2)]
    compiled = [torch.compile(each, backend="aot_eager") for each in every]
    inner = torch.compile(helper, backend="aot_eager")
    outer = torch.compile(lambda x: inner(x) + 1, backend="aot_eager")
    for _ in range(12):
        for each in compiled:
            each(torch.randn(3, 4, requires_grad=each is compiled[1]).clone().detach())
        outer(torch.randn(3, 4))
    print("total", float(total[0]))
"""


def wrong_script(folder):
    return write_script(
        folder,
        """
        import torch

        @torch.library.custom_op("shop::halve", mutates_args=())
        def halve(x: torch.Tensor) -> None:
            x.mul_(0.5)

        @halve.register_fake
        def _(x):
            return None

        @torch.compile(backend="aot_eager")
        def score(x):
            y = x * 2
            halve(y)
            return y + 1

        for _ in range(30):
            score(torch.ones(8))
        """,
    )


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """The same wrong script with its outputs compared, and without; and what torch logged."""
    runs = []
    for asked in (True, False):
        folder = tmp_path_factory.mktemp("wrong")
        traced = folder / "trace"
        env = {"TORCH_TRACE": str(traced), "TORCH_LOGS": "recompiles,graph_breaks"}
        run = run_child(wrong_script(folder), compare_outputs=asked, env=env)
        runs.append((run, "".join(path.read_text() for path in traced.glob("*.log"))))
    return runs


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    script = write_script(tmp_path_factory.mktemp("hostile"), HOSTILE)
    return run_child(script, compare_outputs=True, run_to_end=True)


def trials(run):
    names = {event["region_id"]: event["name"] for event in run.of("region")}
    return {names[event["region_id"]]: event for event in run.of("output_trial")}


def checks(run, name, kind="compiled"):
    found = trials(run)[name]["region_id"]
    return {
        event["output"]: event
        for event in run.of("output_check")
        if event["region_id"] == found and event["run"] == kind
    }


def test_what_can_be_copied_is_compared_and_agrees(hostile):
    assert hostile.returncode == 0
    assert not hostile.of("note")
    compared = {name for name, trial in trials(hostile).items() if trial["compared"]}
    assert compared >= {"Rich", "OwnPrecision", "closes_over", "writes", "Trainer.step", "partial"}
    beyond = [event for event in hostile.of("output_check") if event["same"] is not True]
    assert beyond == []


def test_what_cannot_be_copied_is_said(hostile):
    assert "cannot pickle '_thread.lock' object" in trials(hostile)["NoCopy"]["why"]


def test_outputs_are_taken_apart_and_named(hostile):
    found = checks(hostile, "Rich")
    assert {"output.logits", "output.name", "output.more['none']"} <= set(found)
    assert found["output.logits"]["dtype"] == "complex64"
    assert found["output.more['nan']"]["same"] is True
    assert found["output.more['ids']"]["differing"] == 0
    assert "buffer norm.running_mean (written)" in found


def test_what_a_call_writes_into_its_arguments_is_an_output(hostile):
    found = set(checks(hostile, "writes"))
    assert found == {"output", "layout of output", "argument x (written)", "total (written)"}


def test_a_call_that_knows_no_float64_has_no_reference(hostile):
    trial = trials(hostile)["OwnPrecision"]
    assert trial["reference"] is None
    assert "same dtype" in trial["reference_why"]
    assert checks(hostile, "OwnPrecision")["output"]["rmse"] is None
    assert trials(hostile)["closes_over"]["reference"] == "float64"


@pytest.fixture(scope="module")
def writing_and_drawing(tmp_path_factory):
    script = write_script(
        tmp_path_factory.mktemp("writing"),
        """
        import torch

        @torch.library.custom_op("shop::mark", mutates_args=())
        def mark(x: torch.Tensor) -> None:
            x.add_(1)

        @mark.register_fake
        def _(x):
            return None

        @torch.compile(backend="aot_eager")
        def score(x):
            mark(x)
            return x.sum() * 0

        drop = torch.compile(torch.nn.Dropout(0.5), backend="aot_eager")
        for _ in range(30):
            score(torch.zeros(8))
            drop(torch.ones(64))
        """,
    )
    return run_child(script, compare_outputs=True)


def test_what_compiled_code_leaves_unwritten_is_compared_as_it_was(writing_and_drawing):
    found = checks(writing_and_drawing, "score")
    assert found["output"]["same"] is True
    written = found["argument x (written)"]
    assert (written["same"], written["max_abs_diff"]) == (False, 1.0)


def test_the_script_itself_sees_nothing_of_it(hostile):
    last = hostile.out.splitlines()[-1]
    assert last == "total 12.0"
    assert hostile.out.splitlines().count("in the step") == 12


def test_the_first_wrong_stage_is_found(wrong):
    run, _ = wrong[0]
    ladder = [event for event in run.of("output_check") if event["run"] == "ladder"]
    assert [(event["backend"], event["same"]) for event in ladder] == [
        ("eager", True),
        ("eager", True),
        ("aot_eager", False),
        ("aot_eager", True),
    ]
    assert [event["what"] for event in ladder] == ["output", "layout"] * 2
    assert ladder[2]["max_abs_diff"] == 1.0


def test_nothing_of_it_is_logged_or_counted(wrong):
    assert [bool(run.of("output_trial")) for run, _ in wrong] == [True, False]
    found = [
        (logged.count('"dynamo_start"'), len(run.of("compile")), run.out, run.err)
        for run, logged in wrong
    ]
    assert found[0] == found[1]
    assert found[0][:2] == (1, 1)


def test_a_script_that_fails_is_not_run_again(tmp_path):
    script = write_script(
        tmp_path,
        """
        import torch
        f = torch.compile(torch.sin, backend="eager")
        f(torch.ones(3))
        raise ValueError("no more")
        """,
    )
    run = run_child(script, compare_outputs=True)
    assert run.returncode == 1
    assert not run.of("output_trial")
    (note,) = run.of("note")
    assert (note["what"], note["why"]) == (
        "comparison of outputs",
        "the script ended with an exception",
    )


def test_random_numbers_are_eagers_own_in_every_run(writing_and_drawing):
    assert trials(writing_and_drawing)["Dropout"]["draws_random"] is True
    assert checks(writing_and_drawing, "Dropout")["output"]["same"] is True


STATE = """
    import atexit, hashlib, random

    def digest():
        state = [*net.state_dict().values(), *(p.grad for p in net.parameters()), scale]
        state += [v for s in optimizer.state.values() for v in s.values()]
        data = b"".join(t.detach().numpy().tobytes() for t in state)
        rng = torch.get_rng_state().numpy().tobytes() + repr(random.getstate()).encode()
        modes = [m.training for m in net.modules()]
        found = hashlib.sha256(data).hexdigest(), hashlib.sha256(rng).hexdigest(), modes
        return found, len(seen), len(calls), [id(p.grad) for p in net.parameters()], scale.grad

    @atexit.register  # before torch is imported: it runs after the comparison
    def look_again():
        print("same", digest() == before, torch.is_grad_enabled(), torch.get_default_dtype())
        kept.backward()
        print("graph", net[0].weight.grad is not None)

    import torch
    from torch import nn

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * (2 if torch.compiler.is_compiling() else 1)

    class Last(nn.Module):
        def forward(self, x):
            return Wrong.apply(x)

    seen, calls = [], []
    scale = torch.ones(4, requires_grad=True)
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.1), Last())
    net.register_forward_hook(lambda module, args, out: seen.append(1))
    optimizer = torch.optim.Adam(net.parameters())
    compiled = torch.compile(net, backend="aot_eager")

    def outside(x):
        calls.append(1)
        scale.data.mul_(1.0)
        return x * scale

    other = torch.compile(outside, backend="aot_eager")
    for _ in range(12):
        optimizer.zero_grad()
        compiled(torch.randn(8, 4)).square().mean().backward()
        other(torch.randn(3, 4))
        optimizer.step()
    net[2].eval()
    kept = net(torch.randn(8, 4)).sum()
    before = digest()
"""


@pytest.fixture(scope="module")
def stateful(tmp_path_factory):
    script = write_script(tmp_path_factory.mktemp("stateful"), STATE)
    return run_child(script, compare_outputs=True, run_to_end=True)


def test_nothing_of_the_scripts_state_is_changed(stateful):
    assert stateful.returncode == 0, stateful.err
    last = stateful.out.splitlines()[-2:]
    assert last == ["same True True torch.float32", "graph True"]
    assert all(trial["compared"] for trial in trials(stateful).values())


def test_only_gradients_are_wrong_where_only_backward_is(stateful):
    """Although the script itself ends in eager: its hook recompiles until the limit."""
    found = checks(stateful, "Sequential")
    assert found["output"]["same"] is True
    weight = found["gradient of weight 1.weight"]
    assert (weight["same"], weight["what"]) == (False, "gradient")
    ladder = [event for event in stateful.of("output_check") if event["run"] == "ladder"]
    assert {event["what"] for event in ladder if not event["same"]} == {"gradient"}


def test_what_a_function_finds_outside_has_gradients(stateful):
    found = checks(stateful, "outside")
    assert found["gradient of scale"]["same"] is True


TIES = """
    import torch

    def last_of_equals(gm, _inputs):
        def sort(x, dim=-1, descending=False):
            values, indices = x.flip(dim).sort(dim=dim, descending=descending)
            return values, x.shape[dim] - 1 - indices

        def argmax(x, dim):
            return x.shape[dim] - 1 - x.flip(dim).argmax(dim)

        for node in gm.graph.nodes:
            if node.op == "call_method":
                known = {"sort": sort, "argmax": argmax}
                node.op, node.target = "call_function", known[node.target]
        gm.recompile()
        return gm

    def wrong(gm, _inputs):
        def argmax(x, dim):
            return x.argmin(dim)

        for node in gm.graph.nodes:
            if node.op == "call_method":
                node.op, node.target = "call_function", argmax
        gm.recompile()
        return gm

    def tied(x):
        return x.argmax(-1), x.sort(dim=-1, descending=True)

    def worst(x):
        return x.argmax(-1)

    every = [torch.compile(tied, backend=last_of_equals), torch.compile(worst, backend=wrong)]
    for _ in range(12):
        for each in every:
            each((torch.rand(6, 10) * 3).floor())
"""


def test_another_order_of_equal_values_is_no_difference(tmp_path):
    run = run_child(write_script(tmp_path, TIES), compare_outputs=True)
    tied = checks(run, "tied")
    for name in ("output[0]", "output[1][1]"):
        assert tied[name]["differing"] > 0
        assert (tied[name]["same"], "ties" in tied[name]["why"]) == (True, True)
    assert checks(run, "worst")["output"]["same"] is False
    ladder = [event for event in run.of("output_check") if event["run"] == "ladder"]
    assert ladder[-2]["backend"] == "wrong"


def test_helpers_of_another_module_compute_with_copies(tmp_path):
    helpers = """
        import torch
        other = torch.nn.Linear(4, 4)
        total = torch.zeros(4)

        def helper(x):
            total.add_(1)
            return other(x) * 2 + total
    """
    write_script(tmp_path, helpers, "helpers.py")
    text = """
        import atexit
        atexit.register(lambda: print("total", float(helpers.total[0]), helpers.other.weight.grad))
        import torch
        import helpers
        model = torch.nn.Linear(4, 4)

        def closes_over(x):
            return helpers_of(model(x)).sum()

        helpers_of = helpers.helper
        compiled = torch.compile(closes_over, backend="aot_eager")
        for _ in range(12):
            compiled(torch.randn(3, 4))
    """
    run = run_child(write_script(tmp_path, text), compare_outputs=True, run_to_end=True)
    assert run.out.splitlines() == ["total 12.0 None"], run.err
    found = checks(run, "closes_over")
    assert {"gradient of weight other.weight", "total (written)"} <= set(found)
    assert all(row["same"] for row in found.values())

"""A script that ends early: its calls are replayed, and nobody but the measurement notices."""

from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from child_runs import run_bare, run_child, write_script

from traceview.collectors.child.operators import Own, Rounded
from traceview.collectors.child.own_code import _beginning, _without_cudagraphs
from traceview.collectors.child.pieces import definition
from traceview.collectors.child.state import Control, Region
from traceview.collectors.child.taken import MOST_BYTES, Taker, cloned

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(find_spec("torch") is None, reason="needs torch"),
]

WHAT = "replaying calls after the script's end"

TWICE = """
    import atexit, random, sys

    def last():
        print("at exit", [float(b.sum()) for b in model.buffers()], random.random())
        print(model.training, float(torch.rand(())), torch.is_grad_enabled(), len(calls))

    atexit.register(last)
    import torch

    calls = []

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(64)
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x):
            print("in the call")
            sys.stderr.write("on stderr\\n")
            x.add_(1)
            return self.drop(self.norm(x)).relu()

    model = Net()

    def main():
        torch.manual_seed(0)
        random.seed(0)
        compiled = torch.compile(model, backend="aot_eager")
        x = torch.ones(512, 64)
        for _ in range(2):
            with torch.no_grad():
                compiled(x)
        model.eval()
        sys.stdout.write("no end of line")

    main()
"""


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """Bare, and replayed."""
    script = write_script(tmp_path_factory.mktemp("twice"), TWICE)
    ours = run_child(script, blocks=4, profile=True)
    return run_bare(script), ours


def test_two_calls_get_an_answer(twice):
    _, run = twice
    blocks = [event for event in run.of("block") if event["pair_index"] is not None]
    assert len(blocks) >= 4, "on a slow machine, too"
    assert all(event["replayed"] and not event["compiles_inside"] for event in blocks)
    assert {event["stance"] for event in blocks} == {"eager", "compiled"}
    windows = run.of("profile")
    assert windows, "none was made in the script"
    assert all(event["replayed"] and event["error"] is None for event in windows)


def test_the_replay_leaves_no_trace_in_the_script(twice):
    bare, run = twice
    assert run.returncode == bare.returncode == 0
    assert run.out == bare.stdout
    assert run.err == bare.stderr
    assert not [event for event in run.of("note") if event["what"] == WHAT]


def test_replayed_calls_are_not_the_scripts(twice):
    _, run = twice
    assert run.of("end")[0]["steps_seen"] == 2
    assert run.of("region_end")[-1]["calls"] == 2
    assert len(run.rows("calls")) == 2
    assert not run.of("done")


def test_what_goes_wrong_in_a_replay_is_a_note(tmp_path):
    script = write_script(
        tmp_path,
        """
        import torch

        left = [3]

        @torch.compiler.disable
        def limited():
            left[0] -= 1
            if left[0] < 0:
                raise ValueError("no more")

        @torch.compile(backend="eager")
        def f(x):
            y = x + 1
            limited()
            return y * 2

        f(torch.ones(3))
        print("done")
        """,
    )
    run = run_child(script, blocks=None)
    assert (run.returncode, run.out, run.err) == (0, "done\n", "")
    (note,) = run.of("note")
    assert note["what"] == WHAT
    assert note["why"] == "ValueError: no more"
    assert run.of("end")
    assert not run.of("error")


def test_copies_of_inputs_are_views_where_the_inputs_are():
    torch = pytest.importorskip("torch")
    cache = torch.rand(3, 4)
    view, whole = cloned((cache[1:], cache), torch)
    assert torch.equal(view, cache[1:])
    assert (view.stride(), view.storage_offset()) == ((4, 1), 4)
    assert view._base is whole
    whole.zero_()
    assert not view.any()
    assert cache.any()
    weight = torch.ones(2, 2, requires_grad=True)
    copy = cloned(weight[0], torch)
    assert copy.requires_grad
    assert copy.is_leaf


STALE = """
    import atexit, random

    def last():
        print("at exit", model.total.tolist(), model.count, len(model.seen), model.last)
        print(float(model.weight), random.random(), float(torch.rand(())), model.weight.grad)

    atexit.register(last)
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(()))
            self.register_buffer("total", torch.zeros(3))
            self.scale, self.count, self.seen, self.last = 1.0, 0, [], None

        @torch.compiler.assume_constant_result
        def factor(self):
            return self.scale

        def forward(self, x):
            print("in the call")
            self.total += x
            self.keep(x)
            return x * self.weight * self.factor()

        @torch.compiler.disable
        def keep(self, x):
            self.count += 1
            self.last = self.count
            self.seen.append(x)

    @torch.compile(backend="eager")
    def draws(x):
        return x + torch.rand(3)

    @torch.compile(backend="eager")
    def steps(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    @torch.compile(backend="eager")
    def changes(x):
        return x + 1 if flag else x

    def wrong(graph, inputs):
        return lambda *given: [each * 2 for each in graph(*given)]

    @torch.compile(backend=wrong)
    def doubles(x):
        return x.sort().values * 3 if sorts else x * 3

    torch.manual_seed(0)
    random.seed(0)
    flag, sorts, model = True, False, Net()
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    compiled = torch.compile(model, backend="eager")
    for _ in range(3):
        for call in (compiled, draws, changes, doubles):
            call(torch.ones(3))
    steps(torch.ones(3))
    model.scale, flag = 3.0, False
"""


def test_compiled_code_is_checked_at_the_end_and_the_script_does_not_notice(tmp_path):
    script = write_script(tmp_path, STALE)
    bare, run = run_bare(script), run_child(script, blocks=None)
    assert (run.returncode, run.out) == (0, bare.stdout)
    draws, steps, changes, doubles, net = run.of("end_check")
    assert (net["compared"], net["name"], net["constant"]) == (True, "output", "factor")
    assert (net["relative_error"], net["noise"] < 1e-5) == (pytest.approx(2 / 3), True)
    assert net["line"] == 1 + STALE.split("\n").index(
        next(line for line in STALE.split("\n") if "assume_constant_result" in line)
    )
    assert "random numbers" in draws["why"]
    assert "optimizer" in steps["why"]
    assert "compiled again" in changes["why"]
    assert (doubles["relative_error"], doubles["constant"]) == (pytest.approx(1.0), None)


WRONG_BACKWARD = """
    import torch
    from torch._dynamo.backends.common import aot_autograd

    def as_it_is(graph, inputs):
        return graph

    def halved(graph, inputs):
        def run(*given):
            return [each if each is None else each / 2 for each in graph(*given)]
        return run

    right = aot_autograd(fw_compiler=as_it_is, bw_compiler=as_it_is)
    wrong = aot_autograd(fw_compiler=as_it_is, bw_compiler=halved)

    def net():
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())

    x = torch.ones(2, 3)
    trained = [torch.compile(net(), backend=backend) for backend in (right, wrong)]
    applied = torch.compile(torch.nn.Linear(3, 2), backend=wrong)
    for _ in range(3):
        applied(x)
        for each in trained:
            each(x).sum().backward()
    grads = [p.grad for each in trained for p in each.parameters()]
    before = [grad.clone() for grad in grads]

    import atexit
    atexit.register(lambda: print(all(map(torch.equal, grads, before))))
"""


def test_gradients_are_checked_where_a_backward_was_compiled(tmp_path):
    run = run_child(write_script(tmp_path, WRONG_BACKWARD), blocks=None)
    assert run.returncode == 0, run.err
    right, wrong, applied = run.of("end_check")
    assert (right["compared"], right["results"], right["noise"]) == (True, 3, None)
    assert right["relative_error"] < 1e-5
    assert (wrong["results"], wrong["relative_error"]) == (3, pytest.approx(0.5))
    assert wrong["name"].startswith("gradient of weight 0.")
    assert wrong["noise"] < 1e-5
    assert (applied["results"], applied["name"]) == (1, "output")


def test_roundings_move_what_operators_round_and_nothing_else():
    torch = pytest.importorskip("torch")
    x = torch.linspace(0.1, 1.0, 100)

    def moved(call):
        with Rounded(torch) as rounded:
            result = call()
        return float((result - call()).abs().max()), rounded.low, rounded.sorts

    assert 0 < moved(lambda: x * 3)[0] < 3e-6
    assert moved(lambda: x.view(10, 10).t().floor().abs()) == (0.0, False, False)
    apart, low, sorts = moved(lambda: (x.bfloat16() * 3).float().sort().values)
    assert (apart > 1e-3, low, sorts) == (True, True, True)
    assert moved(lambda: torch.empty(3).fill_(1) + x.max())[2] is False
    with Rounded(torch):
        assert torch.empty(3).tolist() == [3.0] * 3


def test_an_operator_that_calls_functions_runs_while_operators_are_watched(monkeypatch):
    torch = pytest.importorskip("torch")
    attention = pytest.importorskip("torch.nn.attention.flex_attention")
    monkeypatch.setattr(attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True, raising=False)
    x = torch.linspace(0.0, 1.0, 128 * 16).view(1, 1, 128, 16)
    expected = attention.flex_attention(x, x, x)
    with Rounded(torch):
        given = attention.flex_attention(x, x, x)
    torch.testing.assert_close(given, expected)


def test_settled_calls_stay_until_they_crowd_others_out():
    control = Control()
    control.regions = [Region(n, group=n) for n in range(3)]
    control.settled = {0, 1}
    taker = Taker(None, None, sparing=True)
    taker.taken = dict.fromkeys(range(3))
    taker.let_go(control)
    assert list(taker.taken) == [0, 1, 2]
    taker._weights = {0: MOST_BYTES, 1: 1}
    taker.let_go(control)
    assert list(taker.taken) == [1, 2]


def test_what_a_cudagraph_would_replay_runs_and_is_watched():
    torch = pytest.importorskip("torch")
    trees = pytest.importorskip("torch._inductor.cudagraph_trees")

    @torch.library.custom_op("traceview_tests::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    model = SimpleNamespace(model=lambda inputs: torch.ops.traceview_tests.doubled(inputs[0] + 1))
    manager, own = object.__new__(trees.CUDAGraphTreeManager), Own(torch)
    manager.ids_to_funcs, replaying = {3: model}, trees.CUDAGraphTreeManager._run
    with _without_cudagraphs(own) as ran:
        assert manager._run([torch.ones(2)], 3).tolist() == [4, 4]
    assert (ran, list(own.functions)) == ([3], ["traceview_tests.doubled"])
    assert definition(own.functions["traceview_tests.doubled"])[0] == __file__
    assert trees.CUDAGraphTreeManager._run is replaying


def test_each_call_begins_a_step_of_its_own_and_its_mark_is_taken_back():
    trees = pytest.importorskip("torch._inductor.cudagraph_trees")
    before, marks = trees.MarkStepBox.mark_step_counter, []
    for _ in range(2):
        with _beginning():
            marks.append(trees.MarkStepBox.mark_step_counter)
        assert trees.MarkStepBox.mark_step_counter == before
    assert len({before, *marks}) == 3

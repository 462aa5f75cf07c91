"""Hooks and copies that come after a module was compiled, as the collector sees them."""

import ast

import pytest
from child_runs import run_child, write_script

pytestmark = pytest.mark.live

HOOKS = """
    import functools
    import sys
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
            self.spare = nn.Linear(4, 4)

        def forward(self, x):
            x = self.b(self.a(x))
            torch._dynamo.graph_break()
            return self.c(x) if x.shape[0] else self.spare(x)

    def hook(*given):
        seen.append(given[0])

    seen = []
    net = Net()
    compiled = torch.compile(net, backend="eager")
    x = torch.ones(2, 4)
    with torch.no_grad():
        compiled(x)
        net.a.register_forward_hook(functools.partial(hook))
        net.b.register_forward_pre_hook(hook)
        net.spare.register_forward_hook(hook)
        nn.Linear(4, 4).register_forward_hook(hook)
        net.c.register_forward_hook(hook).remove()
        del seen[:]
        compiled(x)
        print([name for name, each in net.named_children() if each in seen])
        for _ in range(400):
            compiled(x)
    print(sys.getprofile())
"""


def test_hooks_that_compiled_code_ignores_are_written_with_what_was_seen(tmp_path):
    run = run_child(write_script(tmp_path, HOOKS), steps=4, run_to_end=True)
    assert run.out.split("\n")[:2] == ["[]", "None"], run.err
    found = {event["path"]: event for event in run.of("late_hook")}
    assert set(found) == {"a", "b", "spare"}
    assert {event["function"] for event in found.values()} == {"<module>"}
    a, b, spare = (found[name] for name in ("a", "b", "spare"))
    assert (a["method"], b["method"]) == ("register_forward_hook", "register_forward_pre_hook")
    assert (a["hook"], b["hook"], b["module"]) == ("partial", "hook", "Linear")
    assert b["line"] == a["line"] + 1
    for event in (a, b):
        assert event["compiled_calls"]
        assert event["eager_calls"] == event["eager_runs"] > 0
        assert (event["compiled_runs"], event["recompiled"]) == (0, False)
    assert (spare["eager_runs"], spare["compiled_runs"]) == (0, 0)


def test_a_setting_that_guards_them_leaves_nothing_to_look_at(tmp_path):
    guarded = "import torch._dynamo\n    torch._dynamo.config.skip_nnmodule_hook_guards = False"
    script = HOOKS.replace("import functools", f"import functools\n    import torch\n    {guarded}")
    run = run_child(write_script(tmp_path, script), steps=4, run_to_end=True)
    assert run.out.split("\n")[0] == "['a', 'b']", run.err
    assert run.of("late_hook") == []


COPIES = """
    import copy
    import pickle
    import weakref
    import torch
    from torch import nn

    class Pair(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.a, self.b = a, b

        def forward(self, x):
            return self.b(self.a(x))

    net = nn.Linear(4, 4)
    net.compile(backend="eager")
    x = torch.ones(2, 4)
    with torch.no_grad():
        net(x)
        copied = copy.deepcopy(net)
        again = copy.deepcopy(copied)
        loaded = pickle.loads(pickle.dumps(net))
        within = copy.deepcopy(net)
        pair = torch.compile(Pair(net, within), backend="eager", fullgraph=True)
        for _ in range(400):
            assert torch.equal(pair(x), within(copied(x)))
            again(x), loaded(x)
    gone = weakref.ref(copied)
    del copied
    print([gone() is None, "_compiled_call_impl" in again.__getstate__()])
"""


def test_copies_of_a_module_compiled_in_place_are_counted_where_they_are_called(tmp_path):
    run = run_child(write_script(tmp_path, COPIES), steps=4, run_to_end=True)
    assert ast.literal_eval(run.out) == [True, False], run.err
    copied, loaded, within = run.of("module_copies")
    assert [each["how"] for each in (copied, loaded, within)] == ["deepcopy", "pickle", "deepcopy"]
    assert [each["calls"] for each in (copied, loaded, within)] == [400, 400, 400]
    assert [each["copies"] for each in (copied, loaded, within)] == [1, 1, 1]
    assert copied["line"] + 3 == within["line"]
    assert copied["region_calls_before"] == 1
    assert copied["call_ms"] > 0


FROZEN = """
    import torch
    import torch._inductor.config
    from torch import nn

    torch._inductor.config.freezing = True
    torch.manual_seed(0)
    net = nn.Linear(4, 4)
    net.register_buffer("spare", torch.ones(4))
    same = {name: each.clone() for name, each in net.state_dict().items()}
    compiled = torch.compile(net)
    x = torch.ones(2, 4)
    with torch.no_grad():
        for step in range(1000):
            before = compiled(x)
            net.load_state_dict(same)
            if step > 4:
                net.bias.add_(1.0)
                same["bias"] = net.bias.clone()
        print(torch.equal(before, compiled(x)), torch.equal(before, net(x)))
"""


def test_frozen_weights_that_change_are_written_with_the_line_that_changes_them(tmp_path):
    script = write_script(tmp_path, FROZEN)
    run = run_child(script, steps=4, run_to_end=True)
    assert run.out.split() == ["True", "False"], run.err
    (found,) = run.of("frozen_weights")
    assert (found["names"], found["changed"], found["weights"]) == (["bias"], 1, 2)
    assert found["stale_calls"] >= 1
    assert found["step"] > 4
    line = next(n for n, text in enumerate(FROZEN.split("\n"), 1) if "bias.add_" in text)
    assert (found["line"], found["function"]) == (line, "<module>")
    assert found["frozen_us"] < found["changed_us"] < found["last_changed_us"]

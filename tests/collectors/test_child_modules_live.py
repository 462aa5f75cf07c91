"""Modules that are compiled: later hooks and copies, and weights under other names."""

import ast
import sys

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


TRAINED = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            return self.inner(x).sum()

    net = Net()
    net.compile(backend="eager")
    x = torch.ones(2, 4)
    net(x).backward()
    net.inner.register_forward_hook(lambda *given: None)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    for _ in range(400):
        net(x).backward()
        optimizer.step()
"""


def test_where_an_optimizer_makes_the_steps_the_eager_call_at_the_end_is_looked_at(tmp_path):
    run = run_child(write_script(tmp_path, TRAINED), steps=4, run_to_end=True)
    (check,) = run.of("end_check")
    assert check["compared"], check["why"]
    (found,) = run.of("late_hook")
    assert found["path"] == "inner"
    assert found["eager_calls"] == found["eager_runs"] > 0
    assert found["compiled_calls"] > found["compiled_runs"] == 0


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
    made = run.of("module_copies")
    assert [each["how"] for each in made] == ["deepcopy", "deepcopy", "pickle", "deepcopy"]
    assert [each["calls"] for each in made] == [400, 400, 400, 400]
    assert [each["copies"] for each in made] == [1, 1, 1, 1]
    copied, again, _loaded, within = made  # a copy of a copy, too
    assert (copied["line"] + 1, copied["line"] + 3) == (again["line"], within["line"])
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


LOST = """
    import pickle
    import traceback
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return self.head(self.encoder(x))

    def load(module, state, strict=False):
        return module.load_state_dict(state, strict=strict)

    saved = {"_orig_mod." + name: each for name, each in Net().state_dict().items()}
    before = Net().load_state_dict(saved, strict=False)
    online, part, plain = torch.compile(Net(), backend="eager"), Net(), Net()
    part.encoder = torch.compile(part.encoder, backend="eager")
    for _ in range(3):
        plain.load_state_dict(state_dict=online.state_dict(), strict=False)
    online.load_state_dict(plain.state_dict(), strict=False)
    plain.load_state_dict(part.state_dict(), strict=False)
    online.encoder = torch.compile(online.encoder, backend="eager")
    good = Net()
    load(good, saved)
    good.load_state_dict(online._orig_mod.state_dict(), strict=False)  # all but encoder's
    good.head.load_state_dict({"weight": torch.ones(4, 4), "scale": torch.ones(4)}, strict=False)
    good.load_state_dict(plain.state_dict())
    print(before == pickle.loads(pickle.dumps(before)), len(before.missing_keys))
    try:
        plain.load_state_dict(saved)
    except RuntimeError as error:
        print(str(error).startswith("Error(s) in loading state_dict for Net"))
        trace = traceback.extract_tb(error.__traceback__)
    print([each.name for each in trace] == ["<module>", "load_state_dict"])

    source = {name: each + 1 for name, each in plain.state_dict().items()}

    @torch.compile(backend="eager")
    def loading(x):
        plain.load_state_dict(source)
        return plain(x)

    x = torch.ones(2, 4)
    with torch.no_grad():
        print(torch.equal(loading(x), plain(x)), torch.equal(plain.head.bias, source["head.bias"]))
        for _ in range(400):
            online(x)
"""


def test_weights_that_are_not_loaded_for_the_prefix_are_written_by_line(tmp_path):
    script = write_script(tmp_path, LOST)
    run = run_child(script, steps=4, run_to_end=True)
    plain_trace = str(sys.version_info >= (3, 11))
    assert run.out.split() == ["True", "4", "True", plain_trace, "True", "True"], run.err
    lines = script.read_text().split("\n")
    found = {lines[each["line"] - 1].split("#")[0].strip(): each for each in run.of("lost_weights")}
    kept = ("prefixed", "tensors", "loaded", "lost", "loads", "loaded_later")
    assert {text: tuple(each[key] for key in kept) for text, each in found.items()} == {
        "before = Net().load_state_dict(saved, strict=False)": ("given", 4, 0, 4, 1, 0),
        "plain.load_state_dict(state_dict=online.state_dict(), strict=False)": (
            "given", 4, 0, 4, 3, 0,
        ),
        "online.load_state_dict(plain.state_dict(), strict=False)": ("own", 4, 0, 4, 1, 0),
        "plain.load_state_dict(part.state_dict(), strict=False)": ("given", 4, 2, 2, 1, 0),
        "return module.load_state_dict(state, strict=strict)": ("given", 4, 0, 4, 1, 1),
        "good.load_state_dict(online._orig_mod.state_dict(), strict=False)": (
            "given", 4, 2, 2, 1, 1,
        ),
    }  # fmt: skip
    inner = found["plain.load_state_dict(part.state_dict(), strict=False)"]
    assert inner["names"] == ["encoder._orig_mod.weight", "encoder._orig_mod.bias"]
    assert len(found["before = Net().load_state_dict(saved, strict=False)"]["names"]) == 3
    assert {each["module"] for each in found.values()} == {"Net"}

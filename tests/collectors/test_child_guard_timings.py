"""Guards timed with and without parts of them, on a tree that costs what the test says."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

import pytest

from traceview.collectors.child import guards as guard_timings
from traceview.collectors.child.guards import time_guards

GUARDS = "torch._dynamo.guards"


class Heard:
    def __init__(self):
        self.events, self.notes = [], []

    def write(self, event, **keys):
        self.events.append((event, keys))

    def note(self, what, error):
        self.notes.append((what, str(error)))


class Manager:
    """Of one source; ``us`` is what its own guards take."""

    def __init__(self, source, us=0.0, *children, keys=()):
        self.source, self.us, self.children, self.keys = source, us, children, keys
        if keys:
            self.get_key_value_managers = lambda: {0: (None, keys[0])}

    def get_source(self):
        return self.source

    def get_child_managers(self):
        return self.children

    def get_leaf_guards(self):
        return [SimpleNamespace(verbose_code_parts=lambda: ["one", "two"])] if self.us else []

    def clone_manager(self, keep):
        if not keep(self):
            return None
        copies = [c for c in (child.clone_manager(keep) for child in self.children) if c]
        pairs = [c for c in (child.clone_manager(keep) for child in self.keys) if c]
        return Manager(self.source, self.us, *copies, keys=tuple(pairs))

    def check(self, scope):
        clock.now += int(1000 * self.us)
        for child in (*self.children, *self.keys):
            child.check(scope)
        return True


clock = SimpleNamespace(now=0)


@pytest.fixture
def made(monkeypatch):
    """A function: guards are made → what was heard of them; time goes by in their checks alone."""
    torch_guards = SimpleNamespace(guard_manager_testing_hook_fn=None)
    monkeypatch.setitem(sys.modules, GUARDS, torch_guards)
    context = SimpleNamespace(current_compile_id=lambda: "0/0")
    monkeypatch.setitem(sys.modules, "torch._guards", SimpleNamespace(CompileContext=context))
    still = SimpleNamespace(perf_counter=time.perf_counter, perf_counter_ns=lambda: clock.now)
    monkeypatch.setattr(guard_timings, "time", still)
    heard = Heard()
    time_guards(heard)

    def make(root):
        torch_guards.guard_manager_testing_hook_fn(SimpleNamespace(root=root), {}, None)
        return heard

    return make


def told(heard):
    rows = [keys for event, keys in heard.events if event == "guard_timing"]
    return [(row["source_name"], row["guards"], pytest.approx(row["us"])) for row in rows]


def test_the_dearest_branches_are_told_and_add_up(made):
    layers = [Manager(f"L['self'].layers[{number}]", 0.5) for number in range(10)]
    scale = Manager("L['self'].scale", 8.0)
    heard = made(
        Manager("L", 1.0, Manager("L['x']", 0.2), Manager("L['self']", 0.0, scale, *layers))
    )
    assert told(heard) == [
        (None, 26, 14.2),
        ("L['self'].scale", 2, 8.0),
        ("L['self']", 20, 5.0),  # what its layers cost together: none of them a tenth
    ]
    assert {keys["compile_id"] for _, keys in heard.events} == {"0/0"}
    assert {keys["evaluations"] for _, keys in heard.events} == {guard_timings.EVALUATIONS}


def test_globals_are_branches_like_locals(made):
    few = [Manager(f"G['f{number}']", 0.1) for number in range(30)]
    dear = Manager("G['table']", 4.0)
    heard = made(Manager("L", 1.0, Manager("G", 0.0, dear, *few)))
    assert told(heard)[1:] == [("G['table']", 2, 4.0)]


def test_values_of_a_dictionary_are_branches(made):
    values = Manager("L['d']", 0.0, keys=(Manager("L['d']['a']", 3.0),))
    assert told(made(Manager("L", 1.0, values)))[1:] == [("L['d']['a']", 2, 3.0)]


def test_no_time_is_left(made, monkeypatch):
    monkeypatch.setattr(guard_timings, "SET_S", 0.0)
    heard = made(Manager("L", 1.0, Manager("L['x']", 4.0)))
    assert told(heard) == [(None, 4, 5.0)]  # the set alone


def test_an_error_ends_it_and_is_noted_once(made):
    root = SimpleNamespace(get_child_managers=lambda: 1 / 0)
    made(root)
    heard = made(root)
    assert heard.events == []
    assert heard.notes == [("cost of guards", "division by zero")]


@pytest.mark.parametrize("taken", [SimpleNamespace(guard_manager_testing_hook_fn=print), None])
def test_a_hook_of_others_stays(monkeypatch, taken):
    """And a torch that has none, or was not imported, is left as it is."""
    monkeypatch.setitem(sys.modules, GUARDS, taken)
    time_guards(Heard())
    assert taken is None or taken.guard_manager_testing_hook_fn is print


def test_one_rank_measures_for_all(monkeypatch):
    torch_guards = SimpleNamespace(guard_manager_testing_hook_fn=None)
    monkeypatch.setitem(sys.modules, GUARDS, torch_guards)
    monkeypatch.setenv("RANK", "1")
    time_guards(Heard())
    assert torch_guards.guard_manager_testing_hook_fn is None

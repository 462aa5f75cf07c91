"""The user's line behind a guard: made known where torch itself would not note it."""

import sys
from types import SimpleNamespace

import pytest

from traceview.collectors.child.guards import keep_guard_lines


class GuardsSet:
    """As in torch/_guards.py of 2.8, reduced."""

    def __init__(self):
        self.inner = set()

    def add(self, guard, *, collect_debug_stack=True, skip=0):
        self.inner.add(guard)


@pytest.fixture
def guards(monkeypatch):
    """A fake torch._guards with a ``GuardsSet`` of its own."""
    context = SimpleNamespace(extract_stack=lambda: ["train.py:7"])
    fresh = type("GuardsSet", (GuardsSet,), {"add": GuardsSet.add})
    module = SimpleNamespace(GuardsSet=fresh, TracingContext=context)
    monkeypatch.setitem(sys.modules, "torch._guards", module)
    return module


class Guard:
    user_stack = None


@pytest.mark.parametrize(
    ("version", "noted"),
    [("2.6.0+debian", True), ("2.8.0", True), ("2.9.1", False), ("dev", False)],
)
def test_only_versions_that_do_not_note_it_are_helped(guards, version, noted):
    keep_guard_lines(SimpleNamespace(__version__=version))
    guard, found = Guard(), guards.GuardsSet()
    found.add(guard, collect_debug_stack=False, skip=1)
    assert guard in found.inner
    assert guard.user_stack == (["train.py:7"] if noted else None)


def test_what_is_known_stays(guards):
    keep_guard_lines(SimpleNamespace(__version__="2.7.1"))
    guard, found = Guard(), guards.GuardsSet()
    guard.user_stack = ["model.py:3"]
    found.add(guard)
    assert guard.user_stack == ["model.py:3"]


def test_a_torch_without_that_module_is_left_alone(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._guards", raising=False)
    keep_guard_lines(SimpleNamespace(__version__="2.6.0"))

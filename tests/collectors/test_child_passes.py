"""Patterns that Inductor's passes matched: counted around each, as torch itself counts them."""

from __future__ import annotations

import sys
from collections import Counter
from types import ModuleType, SimpleNamespace

import pytest

from traceview.collectors.child.compiles import count_patterns

NAME = "torch._inductor.compile_fx"


class Heard:
    def __init__(self):
        self.events = []

    def write(self, event, **keys):
        self.events.append((event, keys))


@pytest.fixture
def inductor(monkeypatch):
    """A stand-in for torch's module, whose post-grad pass matches two patterns in each graph."""
    counters = {"inductor": Counter()}
    module = ModuleType(NAME)

    def passes(graphs):
        """Of a graph, and of the graphs inside it."""
        counters["inductor"]["pattern_matcher_count"] += 2
        return [module._recursive_post_grad_passes(inner) for inner in graphs]

    module._recursive_post_grad_passes = passes
    monkeypatch.setitem(sys.modules, NAME, module)
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(counters=counters))
    context = SimpleNamespace(current_compile_id=lambda: "3/1")
    guards = SimpleNamespace(CompileContext=context)
    monkeypatch.setitem(sys.modules, "torch._guards", guards)
    return SimpleNamespace(module=module, counters=counters, guards=guards)


def test_a_pass_tells_what_it_and_the_graphs_inside_matched(inductor):
    heard = Heard()
    count_patterns(heard)
    assert inductor.module._recursive_post_grad_passes([[], []]) == [[], []]
    inductor.module._recursive_post_grad_passes([])
    told = {"stage": "post_grad", "compile_id": "3/1"}
    assert heard.events == [
        ("graph_pass", {**told, "patterns": 6}),
        ("graph_pass", {**told, "patterns": 2}),
    ]


def test_a_pass_that_fails_fails_as_before_and_the_next_one_counts(inductor):
    counted = inductor.module._recursive_post_grad_passes

    def picky(graphs):
        if graphs is None:
            raise RuntimeError("no such operator")
        return counted(graphs)

    inductor.module._recursive_post_grad_passes = picky
    heard = Heard()
    count_patterns(heard)
    with pytest.raises(RuntimeError, match="no such operator"):
        inductor.module._recursive_post_grad_passes(None)
    inductor.module._recursive_post_grad_passes([])
    assert [keys["patterns"] for _, keys in heard.events] == [2]


def test_without_a_counter_nothing_is_told(inductor):
    inductor.counters.clear()
    inductor.module._recursive_post_grad_passes = lambda graphs: graphs
    heard = Heard()
    count_patterns(heard)
    assert inductor.module._recursive_post_grad_passes([1]) == [1]
    assert heard.events == []


def test_outside_of_a_compile_no_compile_is_named(inductor):
    del inductor.guards.CompileContext
    heard = Heard()
    count_patterns(heard)
    inductor.module._recursive_post_grad_passes([])
    assert heard.events[0][1]["compile_id"] is None

"""What a loop does with the items of a compiled call's result."""

import ast
from textwrap import dedent

import pytest

from traceview.derive.result_names import unread

LOOP = """
def main():
    for n in range(1000):
        {call}
        {use}
    print(state)
"""


def found(call="state, rates = model.advance(state)", use="pass"):
    text = dedent(LOOP).replace("{call}", call).replace("{use}", use)
    return [(row["item"], row["name"], row["read"]) for row in unread(ast.parse(text), {"advance"})]


@pytest.mark.parametrize(
    ("use", "rows"),
    [
        ("pass", [(1, "rates", "never")]),
        ("if n % 100 == 0: print(rates['melt'])", [(1, "rates", "sometimes")]),
        ("if n % 100 == 0: pass\n        else: print(rates)", []),
        ("if rates.sum() % 2: pass", []),
        ("total = rates.sum()", []),
        ("if n > 5: print(rates)", []),
    ],
)
def test_what_is_read_in_some_steps_only(use, rows):
    assert found(use=use) == rows


def test_what_is_read_behind_the_loop_is_read_once():
    assert found("rates, state = advance(rates)") == [(1, "state", "sometimes")]


def test_other_calls_and_results_as_a_whole_do_not_count():
    assert found("state, rates = model.step(state)") == []
    assert found("state = model.advance(state)") == []
    assert found("state, *rates = model.advance(state)") == []


def test_a_call_outside_of_a_loop_does_not_count():
    assert list(unread(ast.parse("a, b = advance(x)"), {"advance"})) == []

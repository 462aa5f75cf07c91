"""A script with several compiled callables: what the verdict is about, and the others."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from traceview.diagnosis.callables import about_others, of_callable, unreached, with_other_work
from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import Verdict
from traceview.diagnosis.step import regions
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "rank": None, "pid": 7}


def tables(*callables, calls=(9, 9), lines=(), exit_kind="stopped"):
    """``callables`` are rows of callable_speedups; two regions."""
    made = [
        {**HEAD, "region_id": i, "name": name, "call_file": "/a/bench.py", "call_line": 20 + i,
         "backend": "inductor", "calls": calls[i]}
        for i, name in enumerate(("chain", "stack"))
    ]  # fmt: skip
    rows = [{**HEAD, "timed": True, "headline": False, **row} for row in callables]
    reached = [{**HEAD, "file": "/a/bench.py", "line": n, "reached": n < 30} for n in lines]
    return Tables(
        {
            "runs": from_rows("runs", [{**HEAD, "exit_kind": exit_kind}]),
            "regions": from_rows("regions", made),
            "callable_speedups": from_rows("callable_speedups", rows),
            "compile_lines": from_rows("compile_lines", reached),
            "speedups": from_rows("speedups", [HEAD]),
        }
    )


def timed(number, speedup, **more):
    figures = {"speedup": speedup, "speedup_low": speedup - 0.1, "speedup_high": speedup + 0.1}
    figures |= {"eager_ms": speedup, "compiled_ms": 1.0, "pairs_used": 4, "outcome": "helped"}
    return {"region_id": number, **figures, **more}


def said(found, outcome="helped"):
    focus = Focus.of(found)
    return " ".join(
        about_others(found, focus, Verdict(outcome), regions(found, focus), unreached(found, focus))
    )


def test_the_verdict_names_its_callable_and_the_others():
    words = said(tables(timed(0, 4.0), timed(1, 1.5, headline=True)))
    assert words == (
        "This is about stack() at bench.py:21, the second of 2 callables: of those measured, it "
        "takes most of the script's time. Timed as well: chain() at bench.py:20 4.00×."
    )


def test_one_callable_says_nothing():
    assert said(tables(timed(0, 4.0, headline=True))) == ""


def test_a_failed_script_has_its_own_sentence():
    assert said(tables(timed(0, 4.0), timed(1, 1.5, headline=True)), "failed") == ""


def test_what_the_run_did_not_reach_is_listed_with_the_remedy():
    words = said(tables(timed(0, 4.0, headline=True), calls=(9, 0), lines=(20, 41)))
    assert "stopped before a call of stack() at bench.py:21: --run-to-end" in words
    assert "before torch.compile was reached at bench.py:41: --run-to-end" in words


@pytest.mark.parametrize("exit_kind", ["exit", "timeout"])
def test_a_script_that_ended_by_itself_called_what_it_calls(exit_kind):
    found = tables(timed(0, 4.0, headline=True), calls=(9, 0), exit_kind=exit_kind)
    assert said(found) == ""


def test_each_callable_has_a_sentence_and_null_for_what_is_not_known():
    row = {
        "region_id": 0,
        "timed": False,
        "outcome": "not_measured",
        "reason": "it was called once",
    }
    found = tables(row, timed(1, 1.5, headline=True))
    first, second = regions(found, Focus.of(found))
    assert first.sentence == (
        "stack() at bench.py:21: torch.compile helped, 1.50× (95 % interval 1.40–1.60×), "
        "1.00 ms instead of 1.50 ms."
    )
    assert second.sentence == "chain() at bench.py:20: not measured, it was called once."
    assert (second.speedup, second.step_eager_ms, second.eager_ms, second.share) == (None,) * 4
    assert of_callable(second) == second.sentence


class TestOtherWork:
    """Work that recurs between the steps is said where it changes the answer."""

    ROW = MappingProxyType(
        {
            "speedup": 10.0,
            "speedup_low": 9.8,
            "speedup_high": 10.3,
            "eager_mean_ms": 24.0,
            "compiled_mean_ms": 3.0,
        }
    )

    def test_what_changes_the_answer(self):
        assert with_other_work(self.ROW) == (
            "Blocks in which other work recurs between the steps do not count; with them a step "
            "takes 3.00 ms instead of 24.0 ms on average (8.00×)."
        )

    def test_what_decides_is_the_headline_and_this_the_rest(self):
        hurt = {"outcome": "hurt", "eager_ms": 2.0, "compiled_ms": 0.2, "compiled_mean_ms": 30.0}
        assert with_other_work({**self.ROW, **hurt}) == (
            "Where nothing compiles, a step takes 0.200 ms instead of 2.00 ms (10.00×)."
        )

    @pytest.mark.parametrize(
        "known",
        [
            {"eager_mean_ms": None, "compiled_mean_ms": None},
            {"eager_mean_ms": 30.0},
            {"eager_mean_ms": 29.3},
            {"speedup_low": None, "speedup_high": None},
            {"speedup_low": 7.9},
        ],
    )
    def test_what_does_not(self, known):
        assert with_other_work({**self.ROW, **known}) == ""

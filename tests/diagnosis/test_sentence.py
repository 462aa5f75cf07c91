"""The verdict in one or two plain sentences."""

import pytest
from factories import finding
from msgspec.structs import replace

from traceview.diagnosis.model import AccountRow, StanceCounts, Verdict
from traceview.diagnosis.sentence import sentence
from traceview.words.numbers import count, milliseconds, ratio

FIGURES = {
    "speedup": 1.0, "speedup_interval": (0.98, 1.02), "eager_ms": 2.74, "compiled_ms": 2.78,
    "clock": "device", "blocks": 8, "basis": "paired_blocks",
}  # fmt: skip


def said(outcome, reason=None, accounting=None, counts=None, findings=(), **figures):
    verdict = Verdict(outcome, "", **(FIGURES | figures))
    return sentence(verdict, reason, accounting or {}, counts or {}, findings)


def accounts(**stances):
    return {
        stance: tuple(
            AccountRow(name, ms, "idle" if "idle" in name else "busy") for name, ms in rows
        )
        for stance, rows in stances.items()
    }


def test_neutral_names_what_fills_both_steps():
    both = accounts(eager=[("gemm", 9.2), ("idle", 0.8)], compiled=[("gemm", 9.4), ("copy", 0.6)])
    assert said("neutral", accounting=both) == (
        "torch.compile made no measurable difference: 92 % of the step is matrix products "
        "in both; a step takes 2.78 ms instead of 2.74 ms (1.00×, 95 % interval 0.98–1.02×, "
        "device time, 8 block pairs)."
    )


def test_neutral_without_a_dominant_category_names_what_costs_most():
    text = said(
        "neutral", findings=[finding(severity="info"), finding(title="graph breaks at x.py:3")]
    )
    assert text.endswith("What costs most: graph breaks at x.py:3.")


def test_a_wrong_result_weighs_more_than_any_cost():
    slow = finding(title="graph breaks at x.py:3")
    wrong = replace(finding(severity="error", title="f() gives a wrong result"), code="TV703")
    text = said("helped", findings=[slow, wrong])
    assert text.endswith("What matters more: f() gives a wrong result.")


def test_hurt_without_findings_names_what_grew():
    both = accounts(eager=[("elementwise", 1.0)], compiled=[("elementwise", 1.0), ("copy", 0.5)])
    assert said("hurt", accounting=both).endswith(
        "The main reason: 0.500 ms more per step for copies and casts."
    )


def test_helped_by_less_of_something_when_kernels_are_as_many():
    both = accounts(eager=[("elementwise", 3.0)], compiled=[("elementwise", 1.0)])
    per_step = {"eager": StanceCounts(kernels=10.0), "compiled": StanceCounts(kernels=9.0)}
    text = said("helped", accounting=both, counts=per_step)
    assert text.endswith("The main reason: 2.00 ms less per step for elementwise operators.")


def test_failed_says_first_what_happened_then_the_figures():
    text = said("failed", "the script raised ValueError at a.py:3: no")
    assert text.startswith(
        "The script raised ValueError at a.py:3: no. Measured until then: a step"
    )
    bare = said("failed", "the script ended with exit code 2", speedup=None)
    assert bare == "The script ended with exit code 2."


def test_not_compiled():
    text = said("not_compiled", "the script never calls torch.compile", speedup=None)
    assert text == "torch.compile was not used: the script never calls torch.compile."


def test_not_measured_gives_the_side_that_is_known():
    figures = {"speedup": None, "eager_ms": None, "steps_timed": 9}
    text = said("not_measured", "eager steps were not measured", **figures)
    assert text == (
        "No verdict: eager steps were not measured. "
        "A step takes compiled 2.78 ms (host time, 9 steps)."
    )


def test_two_runs_are_named():
    text = said("helped", basis="two_runs", steps_timed=2000, clock="host")
    assert "host time, two runs, 2,000 steps" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.05, "50.0 µs"),
        (0.0042, "4.20 µs"),
        (1.234, "1.23 ms"),
        (345.6, "346 ms"),
        (12345.0, "12.3 s"),
    ],
)
def test_milliseconds(value, text):
    assert milliseconds(value) == text


def test_other_figures():
    assert [ratio(x) for x in (0.984, 1.04, 6.93, 120.4)] == ["0.98×", "1.04×", "6.93×", "120×"]
    assert ratio(0.00075) == "0.000750×"
    assert [count(x) for x in (35.0, 0.5, 2.01)] == ["35", "0.5", "2"]


def test_the_first_cause_is_named_not_the_scripts_own_timer():
    timer = replace(finding(title="its timer holds the compile", seconds=40.0), code="TV901")
    causes = [timer, finding(title="slow start", seconds=9.0), finding(title="slow step", ms=0.2)]
    assert said("hurt", findings=causes).endswith("What costs most: slow start.")
    assert said("helped", findings=causes).endswith("What still costs most: slow start.")


def test_on_a_cpu_there_are_operators():
    per_step = {"eager": StanceCounts(kernels=36.0), "compiled": StanceCounts(kernels=1.0)}
    assert said("helped", counts=per_step).endswith("The main reason: 36 operators became 1.")


@pytest.mark.parametrize(
    ("interval", "opening"),
    [
        ((0.98, 1.02), "torch.compile made no measurable difference:"),
        ((1.01, 1.02), "torch.compile made next to no difference:"),
        ((1.01, 1.4), "torch.compile may have helped, which is not certain:"),
        ((0.7, 0.98), "torch.compile may have hurt, which is not certain:"),
    ],
)
def test_neutral_says_no_more_than_the_interval_does(interval, opening):
    text = said("neutral", speedup_interval=interval)
    assert text.startswith(opening)
    assert ("noisy" in text) == (interval[1] / interval[0] > 1.1)


def test_few_blocks_are_named_as_noise():
    noisy = {"speedup_interval": (0.6, 14.3)}
    assert "noisy (few blocks, which differ widely)" in said("neutral", blocks=3, **noisy)
    assert "noisy (the blocks differ widely)" in said("neutral", blocks=30, **noisy)


def test_a_sure_outcome_of_unsure_size_is_named_as_noise():
    assert "noisy" in said("hurt", speedup_interval=(0.06, 0.88))
    assert "noisy" not in said("hurt", speedup_interval=(0.76, 0.88))


def test_what_compiled_no_graph_and_slows_the_steps_hurts():
    text = said("hurt", "Dynamo compiled no graph", compiled_ms=36.1, eager_ms=0.8)
    opening = "torch.compile hurt: Dynamo compiled no graph, and a step takes 36.1 ms instead of"
    assert text.startswith(opening)


def test_both_times_have_one_unit():
    text = said("hurt", compiled_ms=0.0175, eager_ms=0.00474)
    assert "a step takes 17.5 µs instead of 4.74 µs" in text


def test_python_that_fills_both_steps_is_named_and_a_cause_is_still_given():
    both = accounts(eager=[("python", 9.0), ("gemm", 1.0)], compiled=[("python", 8.0)])
    text = said("neutral", accounting=both, findings=[finding(title="a break")])
    assert "90 % of the step is Python between operators in both" in text
    assert text.endswith("What costs most: a break.")


@pytest.mark.parametrize("category", ["gemm", "elementwise"])
def test_information_is_no_cause(category):
    both = accounts(eager=[(category, 9.0)], compiled=[(category, 9.0)])
    for severity, named in (("info", False), ("warning", True)):
        causes = [finding(title="a break", severity=severity)]
        assert ("a break" in said("neutral", accounting=both, findings=causes)) is named


def test_a_failure_names_the_error_that_explains_it():
    causes = [finding(title="slow step", ms=2.0), finding(title="no such option", severity="error")]
    text = said("failed", "the script raised RuntimeError", findings=causes, speedup=None)
    assert text == "The script raised RuntimeError. The cause: no such option."


def test_not_compiled_with_a_finding_had_no_effect():
    failed = finding(rule="cap-suppressed-failure", title="f() failed to compile")
    text = said("not_compiled", "Dynamo compiled no graph", findings=[failed], speedup=None)
    assert text == (
        "torch.compile had no effect: Dynamo compiled no graph. The reason: f() failed to compile."
    )
    vain = finding(rule="gb-data-dependent", title="an if", ms=30.0)
    text = said("not_compiled", "Dynamo compiled no graph", findings=[vain], speedup=None)
    assert text == "torch.compile gained nothing: Dynamo compiled no graph. The reason: an if."
    same = finding(rule="cap-nothing-compiled", title="never called")
    text = said("not_compiled", "it was never called", findings=[same], speedup=None)
    assert text == "torch.compile had no effect: it was never called."

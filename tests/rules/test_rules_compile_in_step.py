"""When calls of torch.compile in the step are reported, and what they cost."""

import pytest

from traceview.rules import ct_compile_in_step

REGION = {
    "pid": 1, "call_file": "/u/train.py", "call_line": 9, "name": "rule", "region_id": 0,
    "compile_calls": 1, "compile_calls_ms": 900.0,
}  # fmt: skip


def found(make, *regions, steps=100):
    tables = make(
        regions=[{**REGION, "region_id": n, **region} for n, region in enumerate(regions)],
        runs=[{"steps_seen": steps}],
        speedups=[{"eager_ms": 4.0, "compiled_ms": 4.0}],
        step_counts=[{"stance": "compiled", "timed_step_ms": 4.0}],
    )
    return list(ct_compile_in_step.check(tables))


def test_the_first_call_which_imports_is_no_measure_of_the_others(make):
    (finding,) = found(make, {}, {"compile_calls": 399, "compile_calls_ms": 79.8})
    assert finding.cost.ms_per_step == pytest.approx(3.99 * 0.2)
    assert "4 times in every step" in finding.title


@pytest.mark.parametrize(
    ("calls", "ms", "steps"),
    [(12, 2.4, 4), (90, 18.0, 100), (400, 4.0, 100), (400, None, 100)],
)
def test_few_rare_cheap_and_unrecorded_calls_are_not_reported(make, calls, ms, steps):
    region = {"compile_calls": calls, "compile_calls_ms": ms}
    assert found(make, region, steps=steps) == []


def test_calls_of_several_functions_at_a_line_are_one_finding_by_the_steps_of_the_one_timed(make):
    names = ("tide", "wind", "spread")
    early = [{"name": name, "is_anchor": False, "calls": 1} for name in names * 2]
    late = [
        {"name": name, "is_anchor": name == "wind", "calls": 80, "compile_calls": 80,
         "compile_calls_ms": 40.0}
        for name in names
    ]  # fmt: skip
    (finding,) = found(make, *early, *late)
    assert "torch.compile(…) at train.py:9 is called 3 times in every step" in finding.title
    assert finding.cost.ms_per_step == pytest.approx(1.5)
    assert "one of 3 functions" in finding.explanation

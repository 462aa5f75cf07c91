"""What gradients of slices cost, and from when on they are a finding."""

import pytest

from traceview.rules import ind_slice_gradients

LINES = ["/u/train.py:49", "/u/train.py:52"]
KERNEL = {
    **{"compile_key": "k", "compile_id": "0/0", "kernel_name": "cpp_fused_select_backward_2"},
    **{"slices": 88, "elements": 1_000_000, "dim": 1, "single": True, "user_lines": LINES},
    **{"count": 1.0, "profiled_ms": 9.8, "ms": 9.7, "clock": "host", "share": 1.0},
    "wasted_ms": 9.6,
}
STEP = {"stance": "compiled", "steps": 5, "step_ms": 20.9, "timed_step_ms": 20.7}


def findings(make, *kernels, step_ms=20.7, **settings):
    speedup = {"eager_ms": 32.0, "compiled_ms": step_ms, "speedup": 32.0 / step_ms}
    tables = make(slice_gradients=list(kernels), step_counts=[STEP], speedups=[speedup])
    return list(ind_slice_gradients.check(tables, **settings))


def test_all_kernels_of_it_are_one_finding(make):
    other = {**KERNEL, "kernel_name": "cpp_3", "wasted_ms": 0.4, "user_lines": ["/u/train.py:60"]}
    (found,) = findings(make, other, KERNEL)
    assert (found.location.line, [place.line for place in found.also_at]) == (49, [52, 60])
    assert found.cost.ms_per_step == pytest.approx(10.0)
    assert "88 slices" in found.title
    assert "unbind(1)" in found.snippet.text


def test_ranges_are_split(make):
    (found,) = findings(make, {**KERNEL, "single": False, "dim": 2})
    assert "split(size, 2)" in found.snippet.text


@pytest.mark.parametrize("change", [{"slices": 7}, {"wasted_ms": 1.0}, {"wasted_ms": None}])
def test_few_slices_little_time_and_no_time(make, change):
    assert findings(make, {**KERNEL, **change}) == []


def test_settings(make):
    few = {**KERNEL, "slices": 7}
    assert findings(make, few, least_slices=7)
    assert findings(make, KERNEL, least_share=0.5) == []

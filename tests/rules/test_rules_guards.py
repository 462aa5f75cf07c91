"""What guards cost, on hand-made rows."""

import pytest

from traceview.rules import gd_guard_overhead

FILE = "/u/train.py"
COMPILED = {
    "compile_key": "cold:1:0:0/0", "compile_id": "0/0", "co_name": "forward", "co_filename": FILE,
    "co_firstlineno": 5, "is_forward": True,
}  # fmt: skip
REGION = {
    "pid": 1, "region_id": 0, "name": "Net", "call_file": FILE, "call_line": 30,
    "call_function": "main",
}  # fmt: skip


def looked_up(
    make, us, step_ms, outcome="helped", version="2.13.0", kind="EQUALS_MATCH", file="train.py",
    guards=2000, busy_ms=None, waited_ms=0.0,
):  # fmt: skip
    guard = {"compile_key": "cold:1:0:0/0", "kind": kind, "file": file, "line": 9}
    return make(
        call_path=[{
            "region_id": 0, "compile_id": "0/0", "part": "cache_lookup", "calls": 1.0,
            "us_per_call": us, "ms": us / 1000, "guards": guards,
        }],
        accounting=[{"stance": "compiled", "category": "idle_guards", "profiled_ms": waited_ms}],
        step_counts=[{"stance": "compiled", "step_ms": step_ms, "device_busy_ms": busy_ms}],
        guard_costs=[], sources=[{"file": FILE}], compiles=[COMPILED], regions=[REGION],
        guards=[guard] * 3,
        speedups=[{"outcome": outcome, "compiled_ms": step_ms, "eager_ms": 2 * step_ms}],
        runs=[{"torch_version": version}],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("us", "step_ms", "outcome", "severities"),
    [
        (60.0, 0.4, "helped", ["info"]),
        (60.0, 0.4, "hurt", ["warning"]),
        (60.0, 0.2, "helped", ["warning"]),
        (60.0, 1.0, "hurt", []),
        (12.0, 0.02, "hurt", []),
    ],
)
def test_costly_guards_are_a_warning_where_they_hurt(make, us, step_ms, outcome, severities):
    found = list(gd_guard_overhead.check(looked_up(make, us, step_ms, outcome)))
    assert [finding.severity for finding in found] == severities
    for finding in found:
        assert (finding.location.file, finding.location.line) == (FILE, 9)
        assert finding.cost.ms_per_step == us / 1000


def test_few_guards_that_took_long_met_a_busy_machine(make):
    assert list(gd_guard_overhead.check(looked_up(make, 300.0, 0.4, guards=65))) == []


def test_on_a_gpu_only_guards_that_it_waited_for_count(make):
    hidden = looked_up(make, 60.0, 0.2, busy_ms=0.15, waited_ms=0.001)
    assert list(gd_guard_overhead.check(hidden)) == []
    (finding,) = gd_guard_overhead.check(looked_up(make, 60.0, 0.2, busy_ms=0.1, waited_ms=0.05))
    assert finding.cost.ms_per_step == 0.05


def test_thresholds_of_guards_are_settings(make):
    tables = looked_up(make, 60.0, 1.0)
    assert list(gd_guard_overhead.check(tables)) == []
    assert len(list(gd_guard_overhead.check(tables, least_share=0.05))) == 1


@pytest.mark.parametrize(("version", "pasted"), [("2.13.0", True), ("2.7.1", False)])
def test_guards_of_modules_are_named_at_the_call_and_left_out_where_torch_can(
    make, version, pasted
):
    tables = looked_up(make, 60.0, 0.2, version=version, kind="TYPE_MATCH", file="nn/modules/x.py")
    (finding,) = gd_guard_overhead.check(tables)
    assert (finding.location.file, finding.location.line) == (FILE, 30)
    assert ("guard_filter_fn" in finding.snippet.text) if pasted else finding.snippet is None
    assert ("results are wrong" in finding.what_to_do) is pasted

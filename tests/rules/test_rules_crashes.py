"""cap-compile-crash and cap-fails-compiled, on hand-made rows: whose fault it is."""

import pytest

from traceview.rules import catalogue, run_rules

RULES = {rule.name: rule for rule in catalogue()}
SCRIPT = "/u/train.py"
REGION = {
    "pass": "cold", "pid": 1, "region_id": 0, "kind": "module", "name": "Net", "call_file": SCRIPT,
    "call_line": 20, "call_function": "main", "calls": 1, "target_file": SCRIPT, "target_line": 5,
}  # fmt: skip
FAILED = {
    "pass": "cold", "pid": 1, "compile_key": "cold:1:0:0/0", "compile_id": "0/0",
    "co_name": "forward", "co_filename": SCRIPT, "co_firstlineno": 5, "outcome": "failed",
}  # fmt: skip


def crashes(make, kind, reason, *, own=False):
    run = {"pid": 1, "error_type": kind, "error_message": reason, "error_file": SCRIPT}
    tables = make(
        runs=[run],
        compiles=[{**FAILED, "fail_type": kind, "fail_reason": reason}],
        regions=[{**REGION, "backend_is_callable": own}],
    )
    findings, _ = run_rules(tables, [RULES["cap-compile-crash"]])
    return findings


@pytest.mark.parametrize(
    ("kind", "own", "whose", "pastes"),
    [
        ("InductorError", False, "an error in torch's compiler", True),
        ("BackendCompilerFailed", False, "an error in torch's compiler", True),
        ("BackendCompilerFailed", True, "an error in the backend that the script gives", False),
        ("InternalTorchDynamoError", True, "an error in torch's compiler", True),
    ],
)
def test_whose_error_it_is(make, kind, own, whose, pastes):
    (finding,) = crashes(make, kind, "KeyError: 'buf9'", own=own)
    assert whose in finding.explanation
    assert ("github.com/pytorch" in finding.what_to_do) is pastes
    assert bool(finding.snippet) is pastes
    assert finding.remedy == ((f"eager={REGION['name']}",) if pastes else ("backend=inductor",))


def test_what_the_machine_lacks_is_no_error_of_the_compiler(make):
    reason = "backend='inductor' raised:\nNo working C++ compiler found in cpp.cxx: (None, 'g++')"
    assert crashes(make, "BackendCompilerFailed", reason) == ()


@pytest.mark.parametrize(
    ("eager", "findings", "goes_on"),
    [({"exit_code": 0}, 1, True), ({"exit_code": 1, "error_type": "InductorError"}, 0, False)],
)
def test_the_all_eager_pass_tells_whether_compiling_is_to_blame(make, eager, findings, goes_on):
    run = {"pid": 1, "error_type": "InductorError", "error_message": "KeyError", "exit_code": 1}
    tables = make(
        runs=[run, {"pass": "baseline", "pid": 2, **eager}],
        compiles=[{**FAILED, "fail_type": "InductorError", "fail_reason": "KeyError: 'buf9'"}],
        regions=[REGION],
    )
    found, _ = run_rules(tables, [RULES["cap-compile-crash"]])
    assert len(found) == findings
    assert any("in eager the script goes on" in each.explanation for each in found) is goes_on


TWICE = "torch.compile with aot_autograd does not currently support double backward"
RAISED = {
    "pid": 1, "exit_kind": "exit", "exit_code": 1, "error_type": "RuntimeError", "steps_seen": 1,
    "error_file": SCRIPT, "error_line": 30,
}  # fmt: skip
LIVED = {"pass": "baseline", "pid": 2, "exit_kind": "stopped", "exit_code": 0, "steps_seen": 3}


@pytest.mark.parametrize(
    ("message", "eager", "title"),
    [
        (TWICE, [], "Double backward through compiled code at train.py:30 is not supported"),
        ("it is odd", [LIVED], "Only compiled, the script raises RuntimeError at train.py:30"),
        ("it is odd", [], None),  # not known
        ("it is odd", [{**LIVED, "steps_seen": 0}], None),  # it did not get as far
        ("it is odd", [{**LIVED, **RAISED, "pass": "baseline", "pid": 2}], None),
    ],
)
def test_a_failure_that_happens_only_compiled(make, message, eager, title):
    tables = make(runs=[{**RAISED, "error_message": message}, *eager], regions=[REGION])
    findings, _ = run_rules(tables, [RULES["cap-fails-compiled"]])
    assert [(each.title, each.severity) for each in findings] == [(title, "error")] * bool(title)
    assert all(each.location.line == 30 for each in findings)
    twice = "Double" in (title or "")
    assert all(each.remedy == (() if twice else ("backend=aot_eager",)) for each in findings)

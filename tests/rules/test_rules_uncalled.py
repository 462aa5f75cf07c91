"""What was compiled and never runs compiled: passed by, or failing while the script goes on."""

import pytest

from traceview.rules import catalogue, run_rules

RULES = {rule.name: rule for rule in catalogue()}
SCRIPT = "/u/train.py"
REGION = {
    "pid": 1, "region_id": 0, "kind": "module_compile", "name": "Net", "call_file": SCRIPT,
    "call_line": 20, "call_function": "main", "calls": 0, "target_file": SCRIPT, "target_line": 5,
    "target_last_line": 9, "fullgraph": False,
}  # fmt: skip
CALLED = {**REGION, "region_id": 7, "kind": "function", "calls": 90, "target_line": 30}
RUN = {"pid": 1, "torch_version": "2.13.0", "exit_kind": "exit", "exit_code": 0}
CUT = {**RUN, "exit_kind": "interrupted"}
SPEEDUP = {"outcome": "neutral", "eager_ms": 4.0, "compiled_ms": 4.0, "speedup": 1.0}


def found(rule, tables):
    return run_rules(tables, [RULES[rule]])[0]


# -- cap-nothing-compiled ----------------------------------------------------------------------


def line(op_id, number, ms, parent=0, file=SCRIPT):
    return {"stance": "compiled", "kind": "line", "op_id": op_id, "parent_id": parent,
            "name": f"{file}:{number}", "file": file, "line": number,
            "duration_ns": round(ms * 1e6)}  # fmt: skip


def beside(make, *lines, regions=(REGION,), run=CUT):
    """Two profiled steps beside a callable that is called; ``regions`` are not."""
    steps = [
        {"stance": "compiled", "op_id": op_id, "name": f"traceview step {number}"}
        for number, op_id in ((8, 0), (9, 100))
    ]
    return make(
        regions=[*regions, CALLED], runs=[run], speedups=[SPEEDUP], line_ops=[*steps, *lines],
        compiles=[{"outcome": "ok"}], compile_intervals=[{}],
    )  # fmt: skip


def test_a_module_compiled_in_place_whose_forward_runs_is_passed_by(make):
    tables = beside(make, line(1, 6, 2.0), line(2, 8, 1.0, parent=1), line(3, 7, 4.0, parent=100))
    (finding,) = found("cap-nothing-compiled", tables)
    assert finding.title == "Net.compile() has no effect: the module itself is never called"
    assert (finding.severity, finding.location.line) == ("warning", 20)
    assert finding.cost.ms_per_step == pytest.approx(3.0), "the line within the line is in it"


@pytest.mark.parametrize("lines", [(), (line(1, 12, 2.0),), (line(1, 6, 2.0, file="/u/other.py"),)])
def test_what_is_not_called_and_does_not_run_may_have_its_turn(make, lines):
    assert found("cap-nothing-compiled", beside(make, *lines)) == ()


def test_modules_of_one_class_are_one_finding(make):
    second = {**REGION, "region_id": 1, "call_line": 21}
    tables = beside(make, line(1, 6, 2.0), regions=(REGION, second))
    (finding,) = found("cap-nothing-compiled", tables)
    assert [place.line for place in finding.also_at] == [21]


def test_a_callable_that_is_not_used_counts_once_the_script_has_ended(make):
    function = {**REGION, "kind": "function", "name": "score"}
    ended = beside(make, line(1, 6, 2.0), regions=(function,), run=RUN)
    (finding,) = found("cap-nothing-compiled", ended)
    assert finding.title == "The result of torch.compile(score) is never called"
    assert found("cap-nothing-compiled", beside(make, line(1, 6, 2.0), regions=(function,))) == ()


def test_cheap_code_in_eager_is_information(make):
    (finding,) = found("cap-nothing-compiled", beside(make, line(1, 6, 0.01)))
    assert finding.severity == "info"


EAGER_RUN = {**RUN, "pass": "baseline", "started_us": 0.0, "wall_s": 30.0}


def left_behind(make, last_call_s, *, recorded=3, **run):
    """Three calls in an all-eager pass of 30 s; nothing was timed in the compiled one."""
    region = {**REGION, "kind": "module", "calls": 3, "outermost_calls": 3}
    calls = [
        {"pass": "baseline", "pid": 1, "region_id": 0, "outermost": True, "host_ms": 100.0,
         "started_us": last_call_s * 1e6 - 1e5 - number}
        for number in range(recorded)
    ]  # fmt: skip
    return make(
        regions=[region, {**region, "pass": "baseline"}], calls=calls,
        runs=[RUN, {**EAGER_RUN, **run}], compiles=[{"outcome": "ok"}], compile_intervals=[{}],
    )  # fmt: skip


def test_a_callable_that_the_script_soon_goes_on_without(make):
    (finding,) = found("cap-nothing-compiled", left_behind(make, 5.0))
    assert finding.title.startswith("Net is called 3 times compiled, then never again")
    assert (finding.severity, finding.location.line) == ("warning", 20)
    assert "25.0 s" in finding.evidence[0].text


@pytest.mark.parametrize(
    ("last_call_s", "other"),
    [
        (18.0, {}),
        (5.0, {"recorded": 2}),
        (5.0, {"exit_kind": "timeout"}),
        (5.0, {"exit_code": 1}),
        (5.0, {"wall_s": 14.0}),
    ],
)
def test_calls_until_near_the_end_or_of_which_not_all_are_known(make, last_call_s, other):
    assert found("cap-nothing-compiled", left_behind(make, last_call_s, **other)) == ()


# -- fullgraph=True ----------------------------------------------------------------------------

REASON = (
    f'Data-dependent branching\n  Explanation: …\n      # File "{SCRIPT}", line 8, in forward, '
    "code: if score.max() < 3:\n\n  Hint: Use torch.where.\n"
)
FAILED = {
    "pid": 1, "compile_id": "0/0", "frame_id": 0, "co_name": "forward", "co_filename": SCRIPT,
    "co_firstlineno": 5, "outcome": "failed", "fail_type": "Unsupported", "fail_reason": REASON,
    "fail_user_file": SCRIPT, "fail_user_line": 8, "started_us": 5e6, "duration_us": 30_000.0,
}  # fmt: skip
STRICT = {**REGION, "kind": "function", "calls": 40, "fullgraph": True}


def caught(make, times, *, region=STRICT, run=RUN, **columns):
    compiles = [
        {**FAILED, "compile_key": f"cold:1:0:0/{n}", "started_us": 1e6 * n + 10, **columns}
        for n in range(times)
    ]
    calls = [
        {"pid": 1, "region_id": 0, "stance": "compiled", "step": n, "outermost": True,
         "compiles_inside": 1, "started_us": 1e6 * n + 1, "host_ms": 33.0}
        for n in range(times)
    ]  # fmt: skip
    return make(compiles=compiles, calls=calls, regions=[region], runs=[run], graph_breaks=[])


def test_an_error_of_fullgraph_that_the_script_catches_costs_every_call(make):
    (finding,) = found("gb-data-dependent", caught(make, 5))
    assert "The script catches the error" in finding.explanation
    assert (finding.severity, finding.location.line) == ("warning", 8)
    assert finding.title.startswith("Graph break at train.py:8 is an error with fullgraph=True: ")
    assert finding.title.endswith("`if` branches on a tensor's value")
    assert finding.cost.ms_per_step == pytest.approx(30.0)


def test_one_failed_compile_is_seconds(make):
    (finding,) = found("gb-data-dependent", caught(make, 1))
    assert (finding.cost.ms_per_step, finding.cost.seconds) == (None, pytest.approx(0.03))


def test_an_error_of_fullgraph_that_ends_the_script_is_explained(make):
    died = {**RUN, "error_type": "Unsupported", "error_message": REASON}
    (finding,) = found("gb-data-dependent", caught(make, 1, run=died))
    assert (finding.severity, finding.location.line) == ("error", 8)
    assert "The script ends here" in finding.explanation


def test_what_fullgraph_forbids_is_said_of_a_call_too(make):
    tables = caught(make, 1, fail_reason="Attempted to call function marked as skipped\n")
    (finding,) = found("gb-unsupported-call", tables)
    assert finding.title.startswith("Graph break at train.py:8 is an error with fullgraph=True: ")


@pytest.mark.parametrize(
    "other",
    [
        {"region": {**STRICT, "fullgraph": False}},
        {"fail_type": "InductorError"},
        {"outcome": "skipped"},
    ],
)
def test_no_such_error_where_breaks_are_allowed(make, other):
    assert found("gb-data-dependent", caught(make, 5, **other)) == ()


# -- what a break leaves in eager --------------------------------------------------------------

BREAK = {
    "compile_key": "cold:1:0:0/0", "compile_id": "0/0", "gb_id": "GB0015", "hints": [],
    "gb_type": "Attempted to wrap sparse Tensor", "reason": "…", "frame_skipped": False,
    "user_file": SCRIPT, "user_line": 7, "user_function": "forward",
}  # fmt: skip
OK = {**FAILED, "compile_key": "cold:1:0:0/0", "outcome": "ok", "fail_type": None}
EAGER = {"stance": "compiled", "category": "elementwise", "what": "aten::mul", "file": SCRIPT}


def behind(make, *details, **region):
    return make(
        graph_breaks=[BREAK], compiles=[OK], regions=[{**STRICT, "fullgraph": False, **region}],
        account_details=[{**EAGER, **detail} for detail in details],
        accounting=[{"stance": "compiled", "category": "elementwise", "kind": "busy", "ms": 3.0}],
        step_counts=[{"stance": "compiled", "gap_ms": 0.0, "step_ms": 4.0}], speedups=[SPEEDUP],
    )  # fmt: skip


def test_a_break_behind_which_nothing_compiles_costs_what_it_leaves_in_eager(make):
    tables = behind(
        make, {"line": 8, "ms": 2.0}, {"line": 9, "ms": 0.5, "in_graph": True},
        {"line": 30, "ms": 0.7},
    )  # fmt: skip
    (finding,) = found("gb-unsupported-call", tables)
    assert finding.cost.ms_per_step == pytest.approx(2.0)
    assert (finding.severity, finding.confidence) == ("warning", "derived")


@pytest.mark.parametrize(
    ("detail", "region"),
    [({"line": 30, "ms": 2.0}, {}), ({"line": 8, "ms": 2.0}, {"target_last_line": None})],
)
def test_where_nothing_is_known_to_be_left_it_is_information(make, detail, region):
    (finding,) = found("gb-unsupported-call", behind(make, detail, **region))
    assert (finding.severity, finding.cost.ms_per_step) == ("info", None)


def test_a_frame_given_up_before_its_first_line_is_its_functions(make):
    skipped = {
        **BREAK, "gb_id": None, "gb_type": "torch.compile will skip tracing the frame forward",
        "frame_skipped": True, "user_file": None, "user_line": None,
    }  # fmt: skip
    gave_up = {
        **OK,
        "outcome": "skipped",
        "fail_reason": "Unsupported functorch tracing attempt\n…",
    }
    (finding,) = found("gb-frame-skipped", make(graph_breaks=[skipped], compiles=[gave_up]))
    assert finding.location.line == 5
    assert "Dynamo gives it up (Unsupported functorch tracing attempt)" in finding.title
    assert "torch.func.grad" in finding.what_to_do

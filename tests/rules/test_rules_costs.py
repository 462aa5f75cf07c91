"""Severity follows cost: recompiles and their limit, breaks beside each other, what cannot pay."""

import json

import pytest

from traceview.rules import catalogue, run_rules

RULES = {rule.name: rule for rule in catalogue()}
FILE = "/u/train.py"
STEP = {"eager_ms": 1.0, "compiled_ms": 1.0, "speedup": 1.0, "outcome": "neutral"}


def found(rule, tables):
    findings, unchecked = run_rules(tables, [RULES[rule]])
    assert unchecked == ()
    return findings


def code(number, line=5, name="forward", **columns):
    """A row of ``compiles`` and ``recompiles`` about one code object."""
    return {
        "compile_key": f"cold:1:0:0/{number}", "compile_id": f"0/{number}", "co_name": name,
        "co_filename": FILE, "co_firstlineno": line, **columns,
    }  # fmt: skip


def recompiled(seconds, times=3, outcome="ok", **more):
    """Tables of a function that a string had compiled ``times`` times more."""
    changes = {"order": 0, "kind": "value", "guard": "mode == 'a'", "source_name": "mode"}
    compiles = [code(n, frame_compile_id=n, duration_us=1e6 * seconds) for n in range(times + 1)]
    compiles[-1]["outcome"] = outcome
    return {
        "compiles": compiles,
        "recompiles": [code(n, **changes, old=f"'{n}'") for n in range(1, times + 1)],
        **more,
    }


# -- recompiles ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "severity"), [(0.02, "info"), (0.5, "warning")])
def test_recompiles_are_graded_by_their_seconds(make, seconds, severity):
    (finding,) = found("rc-python-constant", make(**recompiled(seconds)))
    assert finding.cost.seconds == pytest.approx(3 * seconds)
    assert finding.severity == severity


def test_a_choice_that_comes_again_is_not_what_compiles_again(make):
    tables = recompiled(0.5)
    for row, (old, new) in zip(tables["recompiles"], ["ab", "ba", "ab"], strict=True):
        row |= {"old": f"'{old}'", "new": f"'{new}'"}
    (finding,) = found("rc-python-constant", make(**tables))
    assert finding.severity == "info"


@pytest.mark.parametrize(("steps", "severity"), [(10_000, "warning"), (10_000_000, "info")])
def test_in_a_job_of_known_length_they_are_graded_by_their_part_of_it(make, steps, severity):
    job = [{**STEP, "job_steps": steps, "compile_s": 5.0}]
    (finding,) = found("rc-python-constant", make(**recompiled(2.0, speedups=job)))
    assert finding.severity == severity


def test_cheap_recompiles_up_to_the_limit_are_a_warning(make):
    (finding,) = found("rc-python-constant", make(**recompiled(0.01, 8, outcome="limit")))
    assert finding.severity == "warning"


@pytest.mark.parametrize(
    ("entered", "eager_ms", "severity"),
    [(0.0, 1.0, "error"), (0.5, 0.9, "error"), (0.5, 0.999, "warning")],
)
def test_the_limit_is_an_error_where_it_costs_much(make, entered, eager_ms, severity):
    tables = make(
        **recompiled(0.01, 8, outcome="limit"),
        regions=[{"pid": 1, "region_id": 0, "name": "Net", "calls": 500}],
        step_counts=[{"stance": "compiled", "compiled_regions": entered, "step_ms": 1.0}],
        speedups=[{**STEP, "eager_ms": eager_ms}],
    )
    (finding,) = found("rc-limit-hit", tables)
    assert finding.severity == severity


@pytest.mark.parametrize(("seconds", "severity"), [(0.01, "info"), (0.5, "warning")])
def test_a_limit_that_no_call_meets_costs_its_seconds(make, seconds, severity):
    regions = [{"pid": 1, "region_id": 0, "name": "Net", "calls": 9}]
    (finding,) = found("rc-limit-hit", make(**recompiled(seconds, 8, "limit", regions=regions)))
    assert finding.severity == severity


# -- breaks beside each other --------------------------------------------------------------------


def broken(line, gb_id, number, **columns):
    return {
        "compile_key": f"cold:1:0:0/{number}", "compile_id": f"0/{number}", "gb_id": gb_id,
        "gb_type": "a break", "user_file": FILE, "user_line": line, "user_function": "forward",
        "user_stack": f'[{{"file": "{FILE}", "line": {line}, "function": "forward"}}]', **columns,
    }  # fmt: skip


def entered(*numbers):
    part = {"part": "pregraph_bytecode", "calls": 1.0}
    return [{"compile_id": f"0/{number}", **part} for number in numbers]


def costs(make, **tables):
    counts = {"gap_ms": 0.4, "gaps": 1.0, "compiled_regions": 2.0}
    made = make(step_counts=[{"stance": "compiled", **counts}], **tables)
    names = ("gb-item", "gb-side-effect-io", "gb-frame-skipped")
    return {name: [f.cost.ms_per_step for f in found(name, made)] for name in names}


def test_breaks_share_what_no_line_shows_by_the_graphs_behind_them(make):
    breaks = [broken(7, "GB0124", 0), broken(9, "GB0291", 1)]
    compiles = [code(0), code(1, 7, "torch_dynamo_resume_in_forward_at_7")]
    shared = costs(make, graph_breaks=breaks, compiles=compiles, call_path=entered(0, 1))
    assert shared == {"gb-item": [0.4], "gb-side-effect-io": [0.0], "gb-frame-skipped": []}


def test_calls_of_one_operator_are_one_finding_that_costs_all_of_them(make):
    context = {"context": "unsupported operator: codec.snap.default"}
    breaks = [
        broken(9, "GB0090", 1, **context),
        broken(7, "GB0090", 0, frame_skipped=True, **context),
        broken(12, "GB0090", 2, context="unsupported operator: codec.other.default"),
    ]
    compiles = [
        code(0, outcome="skipped"),
        code(1, 7, "torch_dynamo_resume_in_forward_at_7"),
        code(2, 9, "torch_dynamo_resume_in_forward_at_9"),
    ]
    tables = make(
        step_counts=[{"stance": "compiled", "gap_ms": 0.4, "gaps": 1.0, "compiled_regions": 2.0}],
        graph_breaks=breaks,
        compiles=compiles,
        call_path=entered(0, 1, 2),
    )
    snap, other = found("cap-customop-no-fake", tables)
    assert (snap.location.line, [place.line for place in snap.also_at]) == (7, [9])
    assert "which cannot resume, and at 1 other line: codec::snap" in snap.title
    assert "leaves the whole function" in snap.explanation
    assert snap.cost.ms_per_step == pytest.approx(0.4)
    assert (other.location.line, other.also_at, other.cost.ms_per_step) == (12, (), 0.0)
    assert found("gb-frame-skipped", tables) == ()


def test_functions_compiled_alone_are_the_business_of_the_frame_that_was_given_up(make):
    breaks = [broken(7, "GB0170", 0, frame_skipped=True), broken(21, "GB0124", 1)]
    compiles = [code(0, outcome="skipped"), code(1, 20, "note"), code(2, 30, "expert")]
    region = {"region_id": 0, "target_file": FILE, "target_line": 5}
    shared = costs(
        make, graph_breaks=breaks, compiles=compiles, regions=[region], call_path=entered(1, 2)
    )
    assert shared == {"gb-item": [0.0], "gb-side-effect-io": [], "gb-frame-skipped": [0.4]}


@pytest.mark.parametrize(("clock", "ms"), [("device", 6.4), ("host", 0.4)])
def test_what_a_given_up_frame_runs_in_eager_on_a_gpu_is_its_cost_too(make, clock, ms):
    """The device's idle time at the break does not hold it; the host's time on a CPU does."""
    at = {"stance": "compiled", "category": "elementwise", "clock": clock}
    kernels = [
        {**at, "what": "mul", "file": FILE, "line": line, "in_graph": held, "ms": 2.0 * times}
        for line, held, times in ((6, False, 1), (8, False, 2), (8, True, 4), (40, False, 8))
    ]
    shared = costs(
        make,
        graph_breaks=[broken(7, "GB0170", 0, frame_skipped=True)],
        compiles=[code(0, outcome="skipped"), code(1, 30, "expert")],
        regions=[{"target_file": FILE, "target_line": 5, "target_last_line": 9}],
        call_path=entered(1),
        accounting=[
            {**at, "kind": "busy", "ms": 30.0},
            {**at, "category": "idle_graph_break", "kind": "idle", "ms": 0.4},
        ],
        account_details=kernels,
    )
    assert shared["gb-frame-skipped"] == [pytest.approx(ms)]


def test_where_nothing_runs_compiled_behind_it_its_operators_count_once(make):
    at = {"stance": "compiled", "category": "elementwise", "clock": "device"}
    tables = make(
        step_counts=[{"stance": "compiled", "gap_ms": 0.0, "gaps": 0.0, "compiled_regions": 1.0}],
        graph_breaks=[broken(7, "GB0170", 0, frame_skipped=True)],
        compiles=[code(0, outcome="skipped")],
        regions=[{"target_file": FILE, "target_line": 5, "target_last_line": 9}],
        accounting=[{**at, "kind": "busy", "ms": 9.0}],
        account_details=[
            {**at, "what": "mul", "file": FILE, "line": 6, "in_graph": False, "ms": 2.0}
        ],
    )
    (finding,) = found("gb-frame-skipped", tables)
    assert finding.cost.ms_per_step == pytest.approx(2.0)


@pytest.mark.parametrize("inside", [False, True])
def test_what_the_line_that_breaks_calls_stays_in_eager_anyway(make, inside):
    """An RNN that Dynamo leaves to Python costs nothing; a library that a break splits does."""
    at = {"stance": "compiled", "category": "gemm", "clock": "host"}
    stack = [{"file": FILE, "line": 7, "function": "forward"}]
    stack += [{"file": "/v/site-packages/lib/core.py", "line": 3, "function": "f"}] * inside
    tables = make(
        step_counts=[{"stance": "compiled", "gap_ms": 0.0, "gaps": 0.0, "compiled_regions": 1.0}],
        graph_breaks=[broken(7, "GB0014", 0, user_stack=json.dumps(stack))],
        compiles=[code(0)],
        regions=[{"target_file": FILE, "target_line": 5, "target_last_line": 9}],
        accounting=[{**at, "kind": "busy", "ms": 9.0}],
        account_details=[
            {**at, "what": "mm", "file": FILE, "line": line, "in_graph": False, "ms": ms}
            for line, ms in ((7, 8.0), (8, 1.0))
        ],
    )
    (finding,) = found("gb-unsupported-call", tables)
    assert finding.cost.ms_per_step == pytest.approx(9.0 if inside else 1.0)


def test_a_function_that_a_breaking_line_calls_is_entered_for_that_break(make):
    stack = f'[{{"file": "{FILE}", "line": 9}}, {{"file": "{FILE}", "line": 40}}]'
    breaks = [broken(7, "GB0124", 0), broken(9, "GB0291", 1)]
    compiles = [code(0), code(2, 40, "inner", stack=stack)]
    shared = costs(make, graph_breaks=breaks, compiles=compiles, call_path=entered(2))
    assert (shared["gb-item"], shared["gb-side-effect-io"]) == ([0.0], [0.4])


# -- what cannot pay -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eager_ms", "high", "words"),
    [(1.0, 1.5, "save at most 133 ms"), (1.0, 0.99, "save nothing"), (100.0, 1.5, None)],
)
def test_a_script_too_short_whatever_the_speedup_is(make, eager_ms, high, words):
    row = {**STEP, "eager_ms": eager_ms, "compile_s": 9.0, "speedup_low": 0.7}
    run = {"pid": 1, "steps_seen": 400, "exit_kind": "exit"}
    tables = make(speedups=[{**row, "speedup_high": high}], runs=[run])
    findings = found("bm-no-break-even", tables)
    assert [f.severity for f in findings] == (["info"] if words else [])
    if words:
        assert findings[0].title.startswith("Compiling takes 9.00 s; 400 steps")
        assert words in findings[0].title


def test_a_script_that_was_stopped_tells_no_length(make):
    row = {**STEP, "compile_s": 9.0, "speedup_low": 0.7, "speedup_high": 1.4}
    run = {"pid": 1, "steps_seen": 400, "exit_kind": "stopped"}
    assert found("bm-no-break-even", make(speedups=[row], runs=[run])) == ()


@pytest.mark.parametrize(
    ("step_ms", "advice"),
    [(0.05, None), (0.3, "a function that does 2 of them"), (3.0, "the block instead")],
)
def test_blocks_that_are_too_small_to_be_entered_one_by_one_are_taken_together(
    make, step_ms, advice
):
    lines = ['        x: "f32[4]" = torch.embedding(l_x_)']
    for n in range(10):
        lines += [f'        a{n}_{k}: "f32[4]" = torch.op{k}(x)' for k in range(5)]
    graph = {"compile_key": "cold:1:0:0/0", "compile_id": "0/0", "kind": "dynamo_output"}
    tables = make(
        compiles=[code(0, duration_us=9e6)],
        graphs=[{**graph, "text": "\n".join(lines)}],
        speedups=[{**STEP, "compiled_ms": step_ms}],
    )
    said = [finding.what_to_do for finding in found("ct-repeated-blocks", tables)]
    assert (advice is None and not said) or advice in said[0]

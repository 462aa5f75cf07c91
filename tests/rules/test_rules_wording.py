"""What findings say: names as users know them, and advice that fits what was found."""

import pytest

from traceview.rules import catalogue, run_rules

RULES = {rule.name: rule for rule in catalogue()}
REGION = {
    "pid": 1, "region_id": 0, "kind": "module", "name": "Net", "call_file": "/u/train.py",
    "call_line": 20, "backend": "inductor", "calls": 500, "target_file": "/u/train.py",
    "target_line": 5,
}  # fmt: skip


def only(rule, tables):
    findings, unchecked = run_rules(tables, [RULES[rule]])
    assert unchecked == ()
    (finding,) = findings
    return finding


def a_break(code, **columns):
    return {
        "compile_key": "cold:1:0:0/0", "gb_id": "GB0124", "gb_type": "Unsupported Tensor.item()",
        "frame_skipped": False, "user_file": "/u/train.py", "user_line": 7,
        "user_stack": f'[{{"file": "/u/train.py", "line": 7, "code": "{code}"}}]', **columns,
    }  # fmt: skip


def recompile(number, kind="value", **columns):
    return {
        "compile_key": f"cold:1:0:0/{number}", "compile_id": f"0/{number}", "co_name": "forward",
        "co_filename": "/u/train.py", "co_firstlineno": 5, "order": 0, "kind": kind,
        "guard": "mode == 'a'", "source_name": "mode", "old": str(number), **columns,
    }  # fmt: skip


def sizes(*olds, **columns):
    return [
        recompile(n, "size", source_name="ids", dim=1, old=old, **columns)
        for n, old in enumerate(olds, 1)
    ]


@pytest.mark.parametrize(
    ("code", "read", "paste"),
    [
        ("a = (x == y).float().mean().item()", "`.item()`", "a = (x == y).float().mean().detach()"),
        ("k = int(x.float().sum())", "`int()` of a tensor", "capture_scalar_outputs"),
        ("if x.item() > 3:", "`.item()`", "capture_scalar_outputs"),
        ("elif x.item() > 3:", "`.item()`", "capture_scalar_outputs"),
        ("y = 1 if x.item() else 2", "`.item()`", "capture_scalar_outputs"),
        ("y = math.sqrt(x.item())", "`.item()`", "capture_scalar_outputs"),
        ("text = f'{x.item():.2f}'", "`.item()`", "capture_scalar_outputs"),
        ("self.mean += 0.1 * -x.item()", "`.item()`", "self.mean += 0.1 * -x.detach()"),
    ],
)
def test_what_reads_the_number(make, code, read, paste):
    finding = only("gb-item", make(graph_breaks=[a_break(code)]))
    assert finding.title == f"Graph break at train.py:7: {read}"
    assert paste in finding.snippet.text


def test_a_break_behind_which_nothing_is_compiled_has_no_measured_cost(make):
    counts = [{"stance": "compiled", "gap_ms": 0.0}]
    finding = only("gb-item", make(graph_breaks=[a_break("x.item()")], step_counts=counts))
    assert finding.cost.ms_per_step is None
    assert finding.confidence == "heuristic"
    assert "nothing more ran compiled" in finding.cost.about


@pytest.mark.parametrize(
    ("outcome", "gap", "severity"),
    [
        ("helped", 0.01, "info"),
        ("neutral", 0.01, "info"),
        ("neutral", 0.06, "warning"),
        ("hurt", 0.01, "info"),
        ("hurt", 0.03, "warning"),
        ("neutral", 0.0, "info"),
        ("hurt", 0.0, "warning"),
    ],
)
def test_when_a_cheap_break_is_a_warning(make, outcome, gap, severity):
    tables = make(
        graph_breaks=[a_break("x.item()")],
        step_counts=[{"stance": "compiled", "gap_ms": gap}],
        speedups=[{"outcome": outcome, "compiled_ms": 1.0, "eager_ms": 0.9, "speedup": 0.9}],
    )
    assert only("gb-item", tables).severity == severity


def test_code_behind_a_break_and_its_values_have_plain_names(make):
    rows = [
        recompile(n, co_name="torch_dynamo_resume_in_forward_at_15", source_name="___stack0")
        for n in (1, 2)
    ]
    finding = only("rc-resumed-value", make(recompiles=rows))
    assert finding.title == (
        "forward() (resumed after line 15) recompiled twice: the value read before a graph break "
        "is a constant there"
    )


def test_a_string_is_never_to_become_a_tensor(make):
    rows = [recompile(n, old=f"'{n}'") for n in range(1, 9)]
    limit = [{"compile_key": "k", "compile_id": "0/8", "co_name": "forward", "outcome": "limit",
              "co_filename": "/u/train.py", "co_firstlineno": 5}]  # fmt: skip
    for rule in ("rc-python-constant", "rc-limit-hit"):
        finding = only(rule, make(recompiles=rows, compiles=limit))
        assert "tensor" not in finding.what_to_do
        assert "ompile one function for each value" in finding.what_to_do
    numbers = only("rc-python-constant", make(recompiles=[recompile(1), recompile(2)]))
    assert "tensor" in numbers.what_to_do


def test_sizes_under_dynamic_false_are_marked(make):
    compiles = [
        {"pid": 1, "compile_key": f"cold:1:0:0/{n}", "co_filename": "/u/train.py",
         "co_firstlineno": 5} for n in (1, 2)
    ]  # fmt: skip
    fixed = [{**REGION, "dynamic": "False"}]
    tables = make(recompiles=sizes("4", "5"), regions=fixed, compiles=compiles)
    finding = only("rc-dynamic-false", tables)
    assert ".mark_dynamic(ids, 1)" in finding.snippet.text
    assert "dimension 1 of ids" in finding.title


def test_dynamic_false_of_another_function_is_not_to_blame(make):
    other = {**REGION, "region_id": 1, "target_line": 90, "dynamic": "False"}
    tables = make(recompiles=sizes("4", "5"), regions=[REGION, other])
    assert run_rules(tables, [RULES["rc-dynamic-false"]])[0] == ()


def test_the_attribute_becomes_a_buffer(make):
    rows = [recompile(n, "module_int", source_name="self.step", old=str(n + 6)) for n in (1, 2)]
    text = only("rc-module-int-attr", make(recompiles=rows)).snippet.text
    assert text.startswith('self.register_buffer("step", torch.tensor(0), persistent=False)')


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (
            {"kind": "module_compile", "name": "Sequential",
             "target_file": "/v/site-packages/torch/nn/modules/container.py"},
            "torch's own code too",
        ),
        ({"kind": "function"}, "skip list"),
    ],
)  # fmt: skip
def test_called_and_yet_nothing_compiled(make, region, words):
    tables = make(regions=[{**REGION, **region}], runs=[{"pid": 1}], compile_intervals=[])
    finding = only("cap-nothing-compiled", tables)
    assert words in finding.explanation
    compiled = [{"pid": 1, "compile_key": "cold:1:0:0/0"}]
    tables = make(regions=[{**REGION, **region}], runs=[{"pid": 1}], compiles=compiled)
    assert run_rules(tables, [RULES["cap-nothing-compiled"]])[0] == ()


def test_an_operator_without_a_fake_gets_one_to_paste(make):
    reason = (
        "RuntimeError when making fake tensor call\n"
        "  Explanation: Dynamo failed to run FX node with fake tensors: call_function "
        "my.twist.default(*(FakeTensor(..., size=(4,)),), **{}): got "
        "RuntimeError('There was no fake impl registered for <CustomOpDef(my::twist)>. This is "
        "necessary for torch.compile/export/fx tracing to work.')\n  Hint: none"
    )
    failed = {"compile_key": "k", "compile_id": "0/0", "co_name": "forward", "outcome": "failed",
              "co_filename": "/u/train.py", "co_firstlineno": 5, "fail_reason": reason,
              "fail_type": "TorchRuntimeError"}  # fmt: skip
    switch = [{"name": "suppress_errors", "value": "True"}]
    finding = only("cap-suppressed-failure", make(compiles=[failed], environment=switch))
    assert "no fake impl registered" in finding.explanation
    assert finding.snippet.text.startswith("@twist.register_fake\ndef _(")
    compile(finding.snippet.text, "snippet", "exec")


def test_a_timer_costs_no_time(make):
    timer = {"region_id": 0, "file": "/u/b.py", "start_line": 5, "read_line": 9, "call_line": 7,
             "function": "bench", "clock": "time.perf_counter", "calls_in_loop": True,
             "spans_first_call": True}  # fmt: skip
    calls = [{"region_id": 0, "outermost": True, "host_ms": 9e3, "compiles_inside": 1}]
    finding = only("bm-cold-in-timing", make(script_timers=[timer], calls=calls))
    assert (finding.cost.ms_per_step, finding.cost.seconds) == (None, None)
    assert "9.00 s of compiling" in finding.cost.about


def test_a_cpu_says_once_a_rule_that_a_gpu_is_needed(make):
    tables = make(runs=[{"pid": 1, "device_name": "cpu"}])
    _, unchecked = run_rules(tables)
    needs = {item.rule: item.needs for item in unchecked}
    assert needs["cg-skip-mutation"] == "a GPU: this run was on a CPU"
    gpu = make(runs=[{"pid": 1, "device_name": "NVIDIA H200"}])
    assert "a GPU" not in {item.needs for item in run_rules(gpu)[1]}


def test_a_run_that_compiled_nothing_is_not_told_to_run_again(make):
    _, unchecked = run_rules(make(runs=[{"pid": 1}]), [RULES["gb-frame-skipped"]])
    assert [(item.needs, item.command) for item in unchecked] == [
        ("a log of compiles: torch wrote none in this run", None)
    ]
    _, unchecked = run_rules(make(compiles=[]), [RULES["gb-frame-skipped"]])
    assert unchecked[0].command == "TORCH_LOGS=graph_breaks python SCRIPT"


def test_a_flag_does_not_become_symbolic(make):
    again = {"compile_key": "cold:1:0:0/1", "compile_id": "0/1", "dynamic_symbols": 1,
             "co_filename": "/u/train.py", "co_firstlineno": 5}  # fmt: skip
    for old, names in (("False", []), ("3", ["rc-auto-dynamic"])):
        symbol = {"compile_key": "cold:1:0:0/1", "event": "create", "source_name": "L['mode']"}
        tables = make(recompiles=[recompile(1, old=old)], compiles=[again], symbols=[symbol])
        assert [f.rule for f in run_rules(tables, [RULES["rc-auto-dynamic"]])[0]] == names


def test_globals_and_lengths_are_named_as_the_user_does(make):
    rows = [recompile(n, source_name="G['SCALE']", old=f"{n}.0") for n in (1, 2)]
    title = only("rc-python-constant", make(recompiles=rows)).title
    assert title == "forward() recompiled twice: the global SCALE changes (1.0 → 2.0 → …)"
    limit = [{"compile_key": "k", "compile_id": "0/8", "co_name": "forward", "outcome": "limit",
              "co_filename": "/u/train.py", "co_firstlineno": 5}]  # fmt: skip
    rows = [recompile(n, "length", source_name="self.cache") for n in (1, 2)]
    title = only("rc-limit-hit", make(recompiles=rows, compiles=limit)).title
    assert ": the length of self.cache changes (1 → 2 → …)" in title


def test_a_place_in_torch_is_led_back_to_the_users_call(make):
    sgd = {"co_filename": "/v/site-packages/torch/optim/sgd.py", "co_firstlineno": 105}
    rows = [recompile(n, source_name="self.param_groups[0]['lr']", **sgd) for n in (1, 2)]
    compiles = [
        {"pid": 1, "compile_key": f"cold:1:0:0/{n}", "started_us": 5e6, "duration_us": 1.0, **sgd}
        for n in (1, 2)
    ]
    calls = [{"pid": 1, "region_id": 0, "started_us": 4e6, "host_ms": 2e3, "compiles_inside": 2}]
    tables = make(recompiles=rows, compiles=compiles, calls=calls, regions=[REGION])
    place = only("rc-python-constant", tables).location
    assert (place.file, place.line) == ("/u/train.py", 20)


def test_a_gap_is_on_the_scale_of_the_timed_step(make):
    tables = make(
        graph_breaks=[a_break("x.item()")],
        step_counts=[{"stance": "compiled", "gap_ms": 0.5, "step_ms": 2.0}],
        speedups=[{"outcome": "hurt", "compiled_ms": 1.0, "eager_ms": 0.9, "speedup": 0.9}],
    )
    assert only("gb-item", tables).cost.ms_per_step == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("outcome", "regions", "severity"),
    [("helped", 1.0, "warning"), ("helped", 0.0, "error"), ("hurt", 1.0, "error")],
)
def test_a_limit_behind_which_compiled_code_still_helps_is_no_error(
    make, outcome, regions, severity
):
    limit = [{"compile_key": "k", "compile_id": "0/8", "co_name": "forward", "outcome": "limit",
              "co_filename": "/u/train.py", "co_firstlineno": 5}]  # fmt: skip
    tables = make(
        recompiles=[recompile(1)],
        compiles=limit,
        regions=[REGION],
        step_counts=[{"stance": "compiled", "compiled_regions": regions}],
        speedups=[{"outcome": outcome, "compiled_ms": 1.0, "eager_ms": 2.0, "speedup": 2.0}],
    )
    finding = only("rc-limit-hit", tables)
    assert finding.severity == severity
    assert ("No compiled code at all" in finding.explanation) == (regions == 0)

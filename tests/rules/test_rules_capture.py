"""Capture and the remaining breaks, on hand-made rows: what torch says, whose line, how grave."""

import json

import pytest

from traceview.rules import catalogue, run_rules

RULES = {rule.name: rule for rule in catalogue()}
SCRIPT, TORCH = "/u/train.py", "/v/lib/python3.11/site-packages/torch"
REGION = {
    "pid": 1, "region_id": 0, "kind": "module", "name": "Net", "call_file": SCRIPT,
    "call_line": 20, "call_function": "main", "backend": "inductor", "calls": 500,
    "target_file": SCRIPT, "target_line": 5,
}  # fmt: skip
RUN = {"pid": 1, "torch_version": "2.13.0"}
COMPILE = {
    "pid": 1, "compile_key": "cold:1:0:0/0", "compile_id": "0/0", "co_name": "forward",
    "co_filename": SCRIPT, "co_firstlineno": 5, "duration_us": 1e6,
}  # fmt: skip


def found(rule, tables):
    findings, unchecked = run_rules(tables, [RULES[rule]])[:2]
    assert unchecked == ()
    return findings


def only(rule, tables):
    (finding,) = found(rule, tables)
    return finding


def a_break(gb_id, gb_type, *stack, **columns):
    """A break at the inner end of ``stack``: (file, line, function, code)."""
    frames = stack or ((SCRIPT, 7, "forward", "y = f(x)"),)
    keys = ("file", "line", "function", "code")
    user = next(frame for frame in reversed(frames) if frame[0] == SCRIPT)
    return {
        "compile_key": "cold:1:0:0/0", "compile_id": "0/0", "gb_id": gb_id, "gb_type": gb_type,
        "reason": gb_type, "frame_skipped": False, "user_file": user[0], "user_line": user[1],
        "user_function": user[2],
        "user_stack": json.dumps([dict(zip(keys, frame, strict=True)) for frame in frames]),
        **columns,
    }  # fmt: skip


# -- cap-bad-args ------------------------------------------------------------------------------

BOTH = "RuntimeError: Either mode or options can be specified, but both can't be specified"
OPTION = (
    "RuntimeError: Unexpected optimization option {}, known options are ['debug', 'shape_padding']"
)
MODE = (
    "RuntimeError: Unrecognized mode={}, should be one of: default, reduce-overhead, max-autotune"
)
TYPE = "RuntimeError: Unexpected type of attr max_autotune, got str should be bool"
KEYWORD = "TypeError: compile() got an unexpected keyword argument 'fulgraph'"
BACKEND = "InvalidBackend: Invalid backend: {!r}, see `torch._dynamo.list_backends()`"


def refused(make, error, ended=True, **region):
    message = error.partition(": ")[2] if ended else None
    row = {**REGION, "calls": 0, "error": error, **region}
    run = {**RUN, "error_type": "RuntimeError" if ended else None, "error_message": message}
    return make(regions=[row], runs=[run])


@pytest.mark.parametrize(
    ("error", "title", "remedy"),
    [
        (OPTION.format("shape_pading"), 'did you mean "shape_padding"?', 'Write "shape_padding"'),
        (OPTION.format("shape-padding"), 'did you mean "shape_padding"?', 'Write "shape_padding"'),
        (OPTION.format("zzz"), "does not know", "Remove it"),
        (MODE.format("reduce_overhead"), 'did you mean "reduce-overhead"?', "reduce-overhead"),
        (TYPE, 'gives "max_autotune" a str, and it is a bool', "of type bool"),
        (KEYWORD, 'no argument fulgraph= (did you mean "fullgraph"?)', "fullgraph="),
        (BACKEND.format("induktor"), 'did you mean "inductor"?', 'backend="inductor"'),
        (BACKEND.format("qwertz"), "is no backend of this torch", "Remove backend="),
    ],
)
def test_an_argument_that_torch_refuses(make, error, title, remedy):
    offered = ["eager", "inductor", "relu_compile_error_TESTING_ONLY"]
    finding = only("cap-bad-args", refused(make, error, backends_offered=offered))
    assert title in finding.title
    assert remedy in finding.what_to_do
    assert "TESTING_ONLY" not in finding.explanation
    assert (finding.severity, finding.location.line) == ("error", 20)


def test_without_a_list_of_backends_none_is_suggested(make):
    finding = only("cap-bad-args", refused(make, BACKEND.format("induktor")))
    assert "did you mean" not in finding.title
    assert "There are" not in finding.explanation


@pytest.mark.parametrize(
    ("options", "merged"),
    [
        ('{"shape_padding": true, "a.b": 2}', '"shape_padding": True, "a.b": 2}'),
        ('{"post_grad_custom_post_pass": {"x": 1}}', "**options}"),
        ("not json", "**options}"),
    ],
)
def test_a_mode_and_options_become_one_dict(make, options, merged):
    tables = refused(make, BOTH, mode="max-autotune", options=options)
    text = only("cap-bad-args", tables).snippet.text
    assert text.startswith('torch.compile(..., options={**torch._inductor.list_mode_options("max-')
    assert merged in text


@pytest.mark.parametrize(("others", "severity"), [(0, "warning"), (9, "info")])
def test_a_script_that_catches_the_error(make, others, severity):
    row = {**REGION, "calls": 0, "error": BOTH, "mode": "default", "options": "{}"}
    tables = make(regions=[row, {**REGION, "region_id": 1, "calls": others}], runs=[RUN])
    assert only("cap-bad-args", tables).severity == severity


def test_the_same_call_in_a_loop_is_one_finding_and_other_errors_are_none(make):
    row = {**REGION, "calls": 0, "error": BOTH, "mode": "default"}
    tables = make(regions=[row, {**row, "region_id": 1}], runs=[RUN])
    assert len(found("cap-bad-args", tables)) == 1
    assert found("cap-bad-args", refused(make, "RuntimeError: out of memory")) == ()


def test_a_backend_of_ones_own_that_takes_no_mode(make):
    message = (
        "backend='mine' raised:\nTypeError: mine() got an unexpected keyword argument 'mode'\n\nSet"
    )
    run = {**RUN, "error_type": "BackendCompilerFailed", "error_message": message,
           "error_file": SCRIPT, "error_line": 40}  # fmt: skip
    own = {**REGION, "backend_is_callable": True, "mode": "max-autotune"}
    finding = only("cap-bad-args", make(regions=[own], runs=[run]))
    assert finding.title == "The backend mine() does not take mode="
    assert (finding.severity, finding.location.line) == ("error", 20)
    assert only("cap-bad-args", make(regions=[REGION], runs=[run])).location.line == 40


# -- cap-toolchain-missing ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("InvalidCxxCompiler: No working C++ compiler found in x.cpp.cxx: (None, 'g++')", "C++"),
        ("Cannot find a working triton installation. Either the package is", "Triton is not"),
        ("Found Tesla P100 which is too old to be supported by the triton GPU compiler", "too old"),
        ("RuntimeError: Failed to find C compiler. Please specify via CC", "no C compiler"),
        ("CppCompileError: x.cpp:2:10: fatal error: Python.h: No such file or directory", "header"),
        ("torch.compile is not supported on Python 3.15+", "this Python"),
    ],
)
def test_what_the_machine_lacks(make, message, title):
    run = {**RUN, "error_type": "InductorError", "error_message": message, "error_file": SCRIPT,
           "error_line": 30, "error_function": "main"}  # fmt: skip
    finding = only("cap-toolchain-missing", make(runs=[run]))
    assert title in finding.title
    assert (finding.severity, finding.location.line) == ("error", 30)


def test_a_compile_that_somebody_caught_is_a_warning_and_a_suppressed_one_is_not_ours(make):
    failed = {**COMPILE, "outcome": "failed", "fail_type": "InductorError",
              "fail_reason": "No working C++ compiler found in cpp.cxx: (None, 'g++')"}  # fmt: skip
    env = [{"section": "env", "name": "CXX", "value": "icpx"}]
    finding = only("cap-toolchain-missing", make(runs=[RUN], compiles=[failed], environment=env))
    assert (finding.severity, finding.location.line) == ("warning", 5)
    assert finding.evidence[-1].text == "CXX=icpx"
    switch = [{"name": "suppress_errors", "value": "True"}]
    tables = make(runs=[RUN], compiles=[failed], environment=switch)
    assert found("cap-toolchain-missing", tables) == ()


# -- cap-customop-no-fake ----------------------------------------------------------------------

NO_FAKE = (
    "RuntimeError when making fake tensor call\n  Explanation: … got RuntimeError('There was no "
    "fake impl registered for <CustomOpDef(my::twist)>. This is necessary')\n\nfrom user code:\n"
    f'   File "{SCRIPT}", line 8, in forward\n    return helper(x)\n'
    '  File "/u/ops.py", line 3, in helper\n    return twist(x)\n\nSet TORCHDYNAMO_VERBOSE=1'
)


def test_an_operator_that_raises_is_placed_where_it_was_traced(make):
    run = {**RUN, "error_type": "TorchRuntimeError", "error_message": NO_FAKE,
           "error_file": SCRIPT, "error_line": 40}  # fmt: skip
    failed = {**COMPILE, "outcome": "failed", "fail_type": "E", "fail_reason": NO_FAKE[:200]}
    finding = only("cap-customop-no-fake", make(runs=[run], compiles=[failed]))
    assert (finding.severity, finding.location.file, finding.location.line) == (
        "error", "/u/ops.py", 3,
    )  # fmt: skip
    assert 'register_fake("my::twist")' in finding.snippet.text
    compile(finding.snippet.text, "snippet", "exec")
    assert finding.about == {f"{SCRIPT}:5"}
    assert {evidence.table for evidence in finding.evidence} == {"runs", "compiles"}


def test_an_operator_of_torchs_own_is_no_custom_one(make):
    words = "Operator does not support running with fake tensors"
    ours = a_break("GB0090", words, context="unsupported operator: my.twist.default")
    tables = make(compiles=[], graph_breaks=[ours])
    finding = only("cap-customop-no-fake", tables)
    assert finding.title.startswith("Graph break at train.py:7: my::twist has no fake")
    theirs = a_break("GB0090", words, context="unsupported operator: aten.foo.default")
    tables = make(compiles=[], graph_breaks=[theirs])
    assert found("cap-customop-no-fake", tables) == ()
    assert len(found("gb-unsupported-call", tables)) == 1


# -- cap-nothing-captured ----------------------------------------------------------------------

CALL = {"pid": 1, "region_id": 0, "started_us": 1e6, "host_ms": 1e4, "compiles_inside": 1,
        "stance": "compiled"}  # fmt: skip


def looked_at(outcomes, **region):
    compiles = [
        {**COMPILE, "compile_key": f"cold:1:0:{n}/0", "started_us": 2e6, "outcome": outcome,
         "graph_op_count": 3 if outcome == "ok" else None}
        for n, outcome in enumerate(outcomes)
    ]  # fmt: skip
    return {"regions": [{**REGION, **region}], "calls": [CALL], "compiles": compiles}


@pytest.mark.parametrize(
    ("outcomes", "fires"),
    [
        (["empty", "empty"], True),
        (["skipped"], True),
        (["skipped", "ok"], False),
        (["failed"], False),
        (["limit"], False),
        ([], False),
    ],
)
def test_no_graph_in_any_frame(make, outcomes, fires):
    tables = make(**looked_at(outcomes))
    assert bool(found("cap-nothing-captured", tables)) is fires


def test_the_only_call_of_a_run_that_was_cut_short_may_still_have_compiled(make):
    cut = {**RUN, "exit_kind": "interrupted"}
    for calls, told in ((1, 0), (2, 1)):
        tables = make(**{**looked_at(["skipped"], calls=calls), "runs": [cut]})
        assert len(found("cap-nothing-captured", tables)) == told


def test_a_wrapper_is_told_to_wrap_the_compiled_module(make):
    tables = make(**looked_at(["empty"], name="DistributedDataParallel"))
    finding = only("cap-nothing-captured", tables)
    assert finding.snippet.text == "model = DistributedDataParallel(torch.compile(net))"
    assert (finding.severity, finding.cost.seconds) == ("warning", 1.0)


def test_a_function_without_tensors_beside_a_captured_one_is_information(make):
    rows = looked_at(["empty"])
    rows["regions"].append({**REGION, "region_id": 1, "target_line": 60})
    rows["calls"].append({**CALL, "region_id": 1, "started_us": 5e7})
    rows["compiles"].append(
        {**COMPILE, "compile_key": "k", "started_us": 5.1e7, "outcome": "ok", "graph_op_count": 4}
    )
    assert only("cap-nothing-captured", make(**rows)).severity == "info"


def test_what_broke_is_quoted_with_torchs_hint(make):
    rnn = a_break("GB0014", "Attempted to wrap RNN, GRU, or LSTM", frame_skipped=True,
                  hints=["Set allow_rnn=True", "file an issue"])  # fmt: skip
    finding = only("cap-nothing-captured", make(graph_breaks=[rnn], **looked_at(["skipped"])))
    assert "RNN, GRU, or LSTM" in finding.explanation
    assert "Set allow_rnn=True" in finding.what_to_do


# -- breaks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "gb_id", "context", "said", "advice"),
    [
        ("z = y[y > 0]", "GB0036", "aten.nonzero.default", "indexing with a mask", "torch.where"),
        ("i = torch.nonzero(y)", "GB0036", "aten.nonzero.default", "`nonzero()`", "torch.where"),
        ("u = torch.unique(y)", "GB0036", "aten._unique2.default", "`unique()`", "torch.where"),
        ("h = F.one_hot(y)", "GB0246", "args=()", "`one_hot()`", "num_classes"),
        ("z = helper(y)", "GB0036", "aten.bincount.default", "`bincount()`", "one_hot"),
    ],
)
def test_an_output_whose_size_the_values_tell(make, code, gb_id, context, said, advice):
    row = a_break(gb_id, "Dynamic shape operator", (SCRIPT, 7, "forward", code), context=context)
    finding = only("gb-dynamic-output-shape", make(graph_breaks=[row]))
    assert finding.title == f"Graph break at train.py:7: {said}"
    assert advice in finding.what_to_do
    assert "capture_dynamic_output_shape_ops" in finding.snippet.text
    assert found("gb-unsupported-call", make(graph_breaks=[row])) == ()


@pytest.mark.parametrize(
    ("gb_id", "context", "explanation", "said", "pastes"),
    [
        ("GB0007", "module: zlib, qualname: crc32, skip reason: C", "", "`zlib.crc32`", False),
        ("GB0007", "module: rdkit.Chem, qualname: Fast, skip reason: C", "", "`rdkit.Chem.Fast`",
         True),
        ("GB0156", "call_method X(_FuncPtr)", "trace method `__call__` of class `_FuncPtr`",
         "`_FuncPtr.__call__`", True),
        ("GB0156", "call_method now", "trace method `now` of class `type`", "`y = f(x)`", False),
        ("GB0363", "Opaque object type", "", "`y = f(x)`", False),
    ],
)  # fmt: skip
def test_what_dynamo_cannot_trace(make, gb_id, context, explanation, said, pastes):
    row = a_break(gb_id, "Unsupported", context=context, explanation=explanation)
    finding = only("gb-unsupported-call", make(graph_breaks=[row]))
    assert finding.title == f"Graph break at train.py:7: {said}"
    assert bool(finding.snippet) is pastes
    assert ("nonstrict_trace" in finding.what_to_do) is pastes
    if pastes:
        compile(finding.snippet.text, "snippet", "exec")
        old = make(graph_breaks=[row], runs=[{"torch_version": "2.6.0"}])
        assert "nonstrict_trace" not in only("gb-unsupported-call", old).what_to_do


@pytest.mark.parametrize(
    ("context", "said", "pastes"),
    [
        ("module: time, qualname: perf_counter, skip reason: x", "Read clocks outside",
         "is_compiling"),
        ("module: <unknown module>, qualname: Random.random, skip reason: x", "torch.rand(())", ""),
    ],
)  # fmt: skip
def test_clocks_and_random_numbers_have_remedies_of_their_own(make, context, said, pastes):
    row = a_break("GB0007", "Attempted to call function marked as skipped", context=context)
    finding = only("gb-unsupported-call", make(graph_breaks=[row]))
    assert said in finding.what_to_do
    assert pastes in (finding.snippet.text if finding.snippet else "")
    skipped = make(graph_breaks=[{**row, "frame_skipped": True}], compiles=[COMPILE])
    assert ("torch.rand(())" in only("gb-frame-skipped", skipped).what_to_do) is not bool(pastes)


def test_a_setting_that_torchs_hint_names_is_the_remedy(make):
    hints = ["Set torch._dynamo.config.allow_rnn=True to enable experimental support for RNN"]
    row = a_break("GB0014", "Attempted to wrap RNN, GRU, or LSTM", hints=hints)
    finding = only("gb-unsupported-call", make(graph_breaks=[row]))
    assert finding.snippet.text == "torch._dynamo.config.allow_rnn = True"
    assert "torch.compiler.disable" in finding.what_to_do
    assert "compiles the code after it" in finding.explanation, "no compile is known"
    finding = only("gb-unsupported-call", make(graph_breaks=[row], compiles=[COMPILE]))
    assert "compiles nothing after it" in finding.explanation
    rest = {
        **COMPILE, "compile_key": "cold:1:0:1/0", "co_firstlineno": 7,
        "co_name": "torch_dynamo_resume_in_forward_at_7",
    }  # fmt: skip
    finding = only("gb-unsupported-call", make(graph_breaks=[row], compiles=[COMPILE, rest]))
    assert "compiles the code after it" in finding.explanation


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "if torch.equal(x, self.last):",
            "Graph break at train.py:7: `if` branches on a tensor's value",
        ),
        (
            "same = torch.equal(x, y)",
            "Graph break at train.py:7: `equal()` asks for a tensor's value",
        ),
    ],
)
def test_an_operator_that_answers_with_a_bool_is_a_decision_on_values(make, code, said):
    stack = (SCRIPT, 7, "forward", code)
    row = a_break("GB0033", "Data dependent operator", stack, context="aten.equal.default")
    finding = only("gb-data-dependent", make(graph_breaks=[row]))
    assert finding.title == said
    assert "(a == b).all()" in finding.snippet.text
    assert found("gb-unsupported-call", make(graph_breaks=[row])) == ()
    row["context"] = "aten._local_scalar_dense.default"
    assert found("gb-data-dependent", make(graph_breaks=[row])) == ()
    assert len(found("gb-item", make(graph_breaks=[row]))) == 1


def test_the_words_of_torch_2_6(make):
    builtin = a_break(None, "Graph break due to unsupported builtin rdkit.Fast. This function is")
    title = only("gb-unsupported-call", make(graph_breaks=[builtin])).title
    assert title.endswith(": `rdkit.Fast`")
    shape = a_break("GB0036", "dynamic shape operator: aten.nonzero.default; to enable, set")
    assert len(found("gb-dynamic-output-shape", make(graph_breaks=[shape]))) == 1
    operator = a_break(None, "unsupported operator: my.twist.default (see https://x for how to)")
    tables = make(graph_breaks=[operator], compiles=[])
    assert only("cap-customop-no-fake", tables).title.endswith(
        "my::twist has no fake implementation"
    )
    assert found("gb-unsupported-call", tables) == ()


@pytest.mark.parametrize(
    ("inner", "context"),
    [
        ((f"{TORCH}/optim/optimizer.py", 79, "wrapper", "graph_break()"), "x"),
        ((f"{TORCH}/nn/parallel/distributed.py", 9, "forward", "log()"), "call_method Logger"),
        (("/v/lib/python3.11/contextlib.py", 105, "__init__", "f()"),
         "module: torch.nn.parallel.distributed, qualname: D.f"),
    ],
)  # fmt: skip
def test_breaks_in_torchs_own_code_are_nobodys_fault(make, inner, context):
    row = a_break("GB0025", "Call", (SCRIPT, 7, "step", "m(x)"), inner, context=context)
    for rule in ("gb-unsupported-call", "gb-disabled-hot", "gb-optimizer-or-backward"):
        assert found(rule, make(graph_breaks=[row])) == ()


DISABLED = "Skip calling `torch.compiler.disable()`d function"
OFF = a_break("GB0098", DISABLED, context="<function slow at 0x7f>",
              explanation="… wrapped with `torch.compiler.disable` (reason: it logs)")  # fmt: skip


def profiled(spent, category="elementwise", stance="eager"):
    """A step of 1 ms of which ``spent`` ms are on line 90, which line 7 calls."""
    line = {"stance": stance, "tid": "1", "kind": "line", "file": SCRIPT}
    detail = {"stance": "compiled", "category": category, "file": SCRIPT}
    return {
        "line_ops": [
            {**line, "line": 7, "start_ns": 100, "duration_ns": 800},
            {**line, "line": 90, "start_ns": 200, "duration_ns": 300},
            {**line, "line": 8, "start_ns": 950, "duration_ns": 300},
        ],
        "account_details": [
            {**detail, "line": 90, "ms": spent},
            {**detail, "line": 8, "ms": 1.0 - spent},
        ],
        "speedups": [
            {"outcome": "helped", "eager_ms": 2.0, "compiled_ms": 1.0, "speedup": 2.0},
        ],
    }


@pytest.mark.parametrize(
    ("spent", "category", "cost", "severity"),
    [
        (0.30, "elementwise", 0.30, "warning"),
        (0.10, "elementwise", 0.10, "info"),
        (0.30, "gemm", 0.0, "info"),
    ],
)
def test_a_disabled_function_is_judged_by_the_time_inside(make, spent, category, cost, severity):
    tables = make(graph_breaks=[OFF], **profiled(spent, category))
    finding = only("gb-disabled-hot", tables)
    assert finding.severity == severity
    assert finding.cost.ms_per_step == cost
    said = "Graph break at train.py:7: slow() is kept out of the graph"
    assert finding.title.startswith(said)
    assert "reason given: it logs" in finding.explanation
    assert found("gb-unsupported-call", tables) == ()


def test_the_share_is_a_setting(make):
    tables = make(graph_breaks=[OFF], **profiled(0.3))
    (finding,) = RULES["gb-disabled-hot"].check(tables, hot_share=0.5)
    assert finding.severity == "info"


def test_a_disabled_function_without_a_profile_is_information(make):
    finding = only("gb-disabled-hot", make(graph_breaks=[OFF]))
    assert (finding.severity, finding.cost.ms_per_step) == ("info", None)


@pytest.mark.parametrize(
    ("gb_id", "gb_type", "columns"),
    [
        ("GB0025", "Call to `torch._dynamo.graph_break()`", {}),
        (None, "Skip inlining `torch.compiler.disable()`d function", {}),
        (None, "call torch._dynamo.disable() wrapped function <function f at 0x7f>", {}),
        ("GB0148", "Unsupported function call (delayed)",
         {"explanation": "Reason: Optimized `nn.Module` is wrapped with `torch.compiler.disable`"}),
    ],
)  # fmt: skip
def test_ways_to_ask_for_a_break(make, gb_id, gb_type, columns):
    tables = make(graph_breaks=[a_break(gb_id, gb_type, **columns)])
    assert only("gb-disabled-hot", tables).severity == "info"
    assert found("gb-unsupported-call", tables) == ()


BACKWARD = a_break("GB0123", "Unsupported Tensor.backward() call",
                   (SCRIPT, 7, "step", "loss.backward()"))  # fmt: skip
ZERO = a_break("GB0008", "Attempted to inline function marked as skipped",
               (SCRIPT, 6, "step", "optimizer.zero_grad()"),
               context="qualname: Optimizer.zero_grad, name: inner")  # fmt: skip
ITEM = a_break("GB0124", "Unsupported Tensor.item() call", (SCRIPT, 9, "step", "loss.item()"))
ELSEWHERE = {**ITEM, "user_line": 50, "user_stack": ITEM["user_stack"].replace('"step"', '"other"')}


def outcome(name, eager=1.0, compiled=1.1):
    return [{"outcome": name, "eager_ms": eager, "compiled_ms": compiled, "speedup": 0.9}]


@pytest.mark.parametrize(
    ("breaks", "name", "severity"),
    [
        ([BACKWARD, ZERO, ITEM], "hurt", "warning"),
        ([BACKWARD, ZERO, ITEM], "neutral", "warning"),
        ([BACKWARD, ZERO, ITEM], "helped", "info"),
        ([BACKWARD, ZERO], "hurt", "info"),
        ([BACKWARD, ELSEWHERE], "hurt", "info"),
    ],
)
def test_a_whole_step_is_a_warning_where_more_of_it_breaks(make, breaks, name, severity):
    finding = only("gb-optimizer-or-backward", make(graph_breaks=breaks, speedups=outcome(name)))
    assert (finding.severity, finding.location.line) == (severity, 7)
    assert finding.title.startswith("step() is compiled with backward() in it")


def test_a_compiled_optimizer_is_no_finding(make):
    for rule in ("gb-optimizer-or-backward", "gb-unsupported-call"):
        assert found(rule, make(graph_breaks=[ZERO])) == ()


# -- cap-nothing-compiled ----------------------------------------------------------------------


def in_place(make, compiles_inside, **other):
    """Two callables, of which the second is compiled; the first is torch's own, in place."""
    own = {**REGION, "kind": "module_compile", "name": "Sequential",
           "target_file": f"{TORCH}/nn/modules/container.py", "target_line": 248}  # fmt: skip
    second = {**REGION, "region_id": 1, **other}
    calls = [{**CALL, "compiles_inside": 0}, {**CALL, "region_id": 1, "compiles_inside": 1}]
    calls[0]["compiles_inside"] = compiles_inside
    return make(
        regions=[own, second], runs=[RUN], calls=calls, compiles=[COMPILE], compile_intervals=[{}]
    )


def test_a_sequential_compiled_in_place_beside_what_is_compiled(make):
    finding = only("cap-nothing-compiled", in_place(make, 0))
    assert "Sequential is called 500 times" in finding.title
    assert found("cap-nothing-compiled", in_place(make, 1)) == ()
    alike = {"kind": "module_compile", "target_file": f"{TORCH}/nn/modules/container.py",
             "target_line": 248}  # fmt: skip
    assert found("cap-nothing-compiled", in_place(make, 0, **alike)) == ()


def test_a_script_that_died_had_no_time_to_call(make):
    uncalled = {**REGION, "calls": 0}
    assert len(found("cap-nothing-compiled", make(regions=[uncalled], runs=[RUN]))) == 1
    died = {**RUN, "error_type": "InvalidBackend", "error_message": "Invalid backend: 'x'"}
    assert found("cap-nothing-compiled", make(regions=[uncalled], runs=[died])) == ()
    for end in ({"exit_kind": "timeout"}, {"exit_kind": "exit", "exit_code": 1}):
        cut = make(regions=[uncalled], runs=[{**RUN, **end}])
        assert found("cap-nothing-compiled", cut) == ()


# -- cap-copy-in-eager -------------------------------------------------------------------------

COPIES = {
    "pid": 1, "region_id": 0, "how": "deepcopy", "module": "Cell", "file": "/u/train.py",
    "line": 30, "function": "perturbed", "copies": 5, "calls": 1000, "call_ms": 0.5,
    "region_calls_before": 1, "region_calls_after": 0, "since_s": 20.0,
}  # fmt: skip


def of_copies(make, **changed):
    found = {"module_copies": [COPIES | changed], "regions": [REGION]}
    return list(RULES["cap-copy-in-eager"].check(make(**found)))


def test_copies_that_are_called_in_place_of_the_compiled_module(make):
    (finding,) = of_copies(make)
    assert finding.title == ("5 copies of Cell (train.py:30), called 1,000 times, are not compiled")
    assert finding.cost.ms_per_step is None
    assert "0.500 ms of host time each" in finding.evidence[0].text
    assert "called 0 times after that" in finding.evidence[1].text


def test_a_copy_that_is_called_with_every_step_costs_its_eager_time(make):
    (finding,) = of_copies(make, copies=1, calls=100, region_calls_after=100)
    assert finding.title.startswith("A copy of Cell (train.py:30)")
    assert finding.cost.ms_per_step == 0.5


@pytest.mark.parametrize(
    "rarely",
    [{"calls": 2}, {"calls": 40, "region_calls_after": 100}, {"region_calls_before": 2000}],
)
def test_copies_that_are_called_now_and_then_are_not_reported(make, rarely):
    assert of_copies(make, **rarely) == []

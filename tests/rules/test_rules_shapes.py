"""Rules about sizes on hand-made rows: one recompile has one reason, whichever rule asks."""

from itertools import pairwise

import pytest

from traceview.rules import (
    rc_auto_dynamic,
    rc_dim_specialized,
    rc_dynamic_false,
    rc_limit_hit,
    rc_module_int_attr,
    rc_needless_dynamic,
    rc_param_shape,
    rc_python_constant,
    rc_zero_one,
)
from traceview.rules._recompiles import Cause

FILE = "/u/train.py"
ABOUT = frozenset({f"{FILE}:5"})
HINT = ". Guard failed on a parameter, consider using …force_parameter_static_shapes = False"
SIZED = (rc_auto_dynamic, rc_dynamic_false, rc_zero_one, rc_dim_specialized, rc_param_shape)


def text(value):
    return None if value is None else str(value)


def recompile(number, old, new, **columns):
    return {
        "compile_key": f"cold:1:0:0/{number}", "compile_id": f"0/{number}", "co_name": "forward",
        "co_filename": FILE, "co_firstlineno": 5, "order": 0, "kind": "size", "dim": 0,
        "failed_compile_id": f"0/{number - 1}", "guard": f"expected {old}, actual {new}",
        "source_name": "x", "old": text(old), "new": text(new), **columns,
    }  # fmt: skip


def changes(*sizes, **columns):
    pairs = pairwise(sizes)
    return [recompile(n, old, new, **columns) for n, (old, new) in enumerate(pairs, 1)]


def compiled(number, **columns):
    return {
        "compile_key": f"cold:1:0:0/{number}", "compile_id": f"0/{number}", "pid": 1, "epoch": 0,
        "co_name": "forward", "co_filename": FILE, "co_firstlineno": 5, "outcome": "ok",
        "is_forward": True, "started_us": 100.0 + number, "duration_us": 1e6, "dynamic_symbols": 1,
        **columns,
    }  # fmt: skip


def region(**columns):
    return {
        "pid": 1, "region_id": 0, "name": "Net", "call_file": FILE, "call_line": 30,
        "call_function": "main", "target_file": FILE, "target_line": 5, "calls": 900, **columns,
    }  # fmt: skip


def pin(number, size, line=9, source="L['x'].size()[0]"):
    return {
        "compile_key": f"cold:1:0:0/{number}", "compile_id": f"0/{number}", "event": "specialize",
        "source_name": source, "value": str(size), "user_file": FILE, "user_line": line,
        "user_function": "forward",
        "user_stack": f'[{{"file": "{FILE}", "line": {line}, "function": "forward"}}]',
    }  # fmt: skip


def sized(make, rows, regions=(), symbols=(), **more):
    """Tables with those recompiles, and a compile of each variant."""
    return make(
        recompiles=rows, compiles=[compiled(n) for n in range(len(rows) + 1)],
        regions=[region(), *regions] if not regions else list(regions),
        symbols=list(symbols), sources=[], environment=more.pop("environment", []),
        guards=more.pop("guards", []), warnings=more.pop("warnings", []), calls=[], **more,
    )  # fmt: skip


def said(tables):
    return [finding for module in SIZED for finding in module.check(tables)]


def only(tables):
    (finding,) = said(tables)
    return finding


@pytest.mark.parametrize(
    ("version", "columns", "sources"),
    [
        ("2.13.0", {"source_name": "self.state['keys']"}, "L['self'].state['keys']:0"),
        ("2.13.0", {"source_name": "G['CACHE'].keys", "dim": 1}, "G['CACHE'].keys:1"),
        ("2.13.0", {"source_name": "y", "co_name": "torch_dynamo_resume_in_f_at_9"}, "L['y']:0"),
        ("2.9.1", {"source_name": "self.state['keys']"}, "L['self'].state['keys']"),
        ("2.7.0", {"source_name": "self.state['keys']"}, None),
        ("2.13.0", {"source_name": "self._modules['net']._parameters['bias']"}, None),
        ("2.13.0", {"source_name": "bonus", "kind": "value", "dim": None}, "L['bonus']"),
        ("2.13.0", {"source_name": "rate", "kind": "value", "dim": None, "old": "0.5"}, None),
    ],
)
def test_what_no_line_can_mark_has_a_source(make, version, columns, sources):
    tables = make(runs=[{"torch_version": version}])
    setting = Cause(({**recompile(1, 32, 4), **columns},)).sources(tables)
    assert setting == (f'torch.compiler.config.dynamic_sources = "{sources}"' if sources else "")


def test_a_tensor_in_an_attribute_gets_the_setting(make):
    finding = only(sized(make, changes(32, 4, source_name="self.state['keys']")))
    assert "TORCH_COMPILE_DYNAMIC_SOURCES" in finding.what_to_do
    assert "L['self'].state['keys']:0" in finding.snippet.text
    finding = only(sized(make, changes(32, 4)))
    assert finding.snippet.text == "torch._dynamo.mark_dynamic(x, 0)"


def test_a_first_change_is_automatic_and_information(make):
    finding = only(sized(make, changes(32, 4)))
    assert (finding.rule, finding.severity, finding.about) == ("rc-auto-dynamic", "info", ABOUT)


def test_two_dimensions_that_change_one_after_the_other_are_one_finding(make):
    rows = [recompile(1, 32, 4), recompile(2, 8, 16, dim=1)]
    finding = only(sized(make, rows))
    assert finding.rule == "rc-auto-dynamic"
    assert "dimension 0 and 1 of x" in finding.title.lower()


def test_each_of_two_ranks_may_compile_once_more(make):
    rows = [{**recompile(1, 32, 4), "rank": rank} for rank in (0, 1)]
    assert only(sized(make, rows)).rule == "rc-auto-dynamic"


@pytest.mark.parametrize(
    "row",
    [
        recompile(1, 32, 1),
        recompile(1, 32, 0),
        recompile(1, None, None, kind="shape_guard", guard="2 <= x.size()[0]"),
    ],
)
def test_sizes_of_zero_and_one_are_their_own_matter(make, row):
    finding = only(sized(make, [row]))
    assert (finding.rule, finding.severity) == ("rc-zero-one", "info")


def test_growing_from_one_is_no_matter_of_one(make):
    assert only(sized(make, changes(1, 8))).rule == "rc-auto-dynamic"


def test_a_size_that_the_code_sets_is_named_at_that_line(make):
    pins = [pin(n, size) for n, size in enumerate((12, 16, 20), 1)]
    finding = only(sized(make, changes(8, 12, 16, 20), symbols=pins))
    assert (finding.rule, finding.severity) == ("rc-dim-specialized", "warning")
    assert (finding.location.file, finding.location.line) == (FILE, 9)


def test_two_special_cases_are_information(make):
    rows = changes(8, 12, 16)
    assert only(sized(make, rows)).severity == "info"
    warned = [{"kind": "recompile_limit", "file": FILE, "line": 5}]
    assert only(sized(make, rows, warnings=warned)).severity == "warning"


def test_a_condition_on_the_size_is_a_special_case(make):
    row = recompile(
        1, None, None, kind="shape_guard", guard="x.size()[0] != 33",
        user_file="train.py", user_line=12,
    )  # fmt: skip
    finding = only(sized(make, [row]))
    assert (finding.rule, finding.location.line) == ("rc-dim-specialized", 12)


def test_with_a_parameter_that_torch_names_it_is_the_parameter(make):
    rows = changes(8, 12, 16, 20, guard="tensor 'x' size mismatch" + HINT)
    finding = only(sized(make, rows, regions=[region(dynamic="False")]))
    assert (finding.rule, finding.severity) == ("rc-param-shape", "warning")


def test_with_a_parameter_that_only_the_guards_name_it_is_the_parameter_too(make):
    """torch names the tensor that it looks at first, here a gradient."""
    check = "check_tensor(L['p'], Parameter, DispatchKeySet(CPU), torch.float32, size=[{}, 4], …)"
    guards = [
        {
            "compile_key": f"cold:1:0:0/{n}", "kind": "TENSOR_MATCH", "source_name": "L['p']",
            "guard": check.format(size),
        }
        for n, size in enumerate((8, 12, 16))
    ]  # fmt: skip
    rows = changes(8, 12, 16, source_name="grad")
    pins = [pin(1, 12, source="L['grad'].size()[0]")]
    finding = only(sized(make, rows, guards=guards, symbols=pins))
    assert (finding.rule, finding.severity) == ("rc-param-shape", "info")
    own = [{**guard, "source_name": "L['self']._parameters['weight']"} for guard in guards]
    rows = changes(8, 12, 16, 20)
    assert only(sized(make, rows, guards=own)).severity == "info"
    warned = [{"kind": "recompile_limit", "file": FILE, "line": 5}]
    assert only(sized(make, rows, guards=own, warnings=warned)).severity == "warning"
    assert only(sized(make, rows, guards=guards)).severity == "warning"
    rows = rows[:2]
    same = [{**guard, "guard": check.format(8)} for guard in guards]
    assert only(sized(make, rows, guards=same)).rule == "rc-dim-specialized"


@pytest.mark.parametrize(
    ("sizes", "outcome", "severity"),
    [
        ((128, 256, 512), "helped", "info"),
        ((128, 256, 512), "hurt", "warning"),
        ((24, 40, 56), "helped", "warning"),
    ],
)
def test_static_shapes_of_a_padding_are_information(make, sizes, outcome, severity):
    tables = sized(
        make, changes(*sizes), regions=[region(dynamic="False")], speedups=[{"outcome": outcome}]
    )
    finding = only(tables)
    assert (finding.rule, finding.severity) == ("rc-dynamic-false", severity)
    assert finding.location.line == 30


def test_a_graph_for_all_sizes_has_to_be_compiled_all_the_same(make):
    static = sized(make, changes(24, 40, 56, 72), regions=[region(dynamic="False")])
    assert only(static).cost.seconds == pytest.approx(2.0)
    pins = [pin(n, size) for n, size in enumerate((12, 16, 20), 1)]
    assert only(sized(make, changes(8, 12, 16, 20), symbols=pins)).cost.seconds == pytest.approx(2)


def test_what_one_call_compiles_behind_a_break_is_the_same_finding(make):
    rest = {"co_name": "torch_dynamo_resume_in_forward_at_9", "co_firstlineno": 9}
    ids = [{**rest, "compile_key": f"cold:1:0:1/{n}", "compile_id": f"1/{n}"} for n in range(4)]
    rows = changes(24, 40, 56, 72, 88)
    rows += [{**row, **own} for row, own in zip(changes(24, 40, 56), ids[1:], strict=False)]
    compiles = [compiled(n) for n in range(5)] + [compiled(n, **own) for n, own in enumerate(ids)]
    call = {"pid": 1, "region_id": 0, "compiles_inside": 9, "started_us": 99.0, "host_ms": 1.0}
    tables = make(
        recompiles=rows, compiles=compiles, regions=[region(dynamic="False")], symbols=[],
        sources=[], environment=[], guards=[], warnings=[], calls=[call],
    )  # fmt: skip
    finding = only(tables)
    assert "forward() recompiled 4 times with dynamic=False" in finding.title
    assert "forward() (resumed after line 9) recompiles with it" in finding.explanation
    assert finding.about == ABOUT | {f"{FILE}:9"}
    assert finding.cost.seconds == pytest.approx(3.0 + 1.0)


def test_another_callable_with_dynamic_false_is_not_blamed(make):
    other = region(region_id=1, dynamic="False", target_file="/u/other.py", call_line=40)
    tables = sized(make, changes(24, 40), regions=[region(), other])
    assert only(tables).rule == "rc-auto-dynamic"


def test_switched_off_in_the_configuration_is_the_same_as_dynamic_false(make):
    off = [{"section": "dynamo_config", "name": "automatic_dynamic_shapes", "value": "False"}]
    finding = only(sized(make, changes(24, 40, 56), environment=off))
    assert finding.rule == "rc-dynamic-false"
    assert "automatic_dynamic_shapes" in finding.title


def test_after_a_reset_a_first_change_is_one_again(make):
    rows = changes(32, 4)
    rows.append({**recompile(1, 32, 4), "compile_key": "cold:1:1:0/1"})
    assert set(sized(make, rows)["recompile_causes"]["size_reason"]) == {"first_change"}


def test_the_variant_with_as_many_dimensions_decides(make):
    rows = [
        recompile(2, 1, 2, kind="rank", dim=None),
        recompile(2, 8, 12, order=1, failed_compile_id="0/0"),
    ]
    assert sized(make, rows)["recompile_causes"]["kind"].to_list() == ["size"]


def value(number, source, old, **columns):
    return recompile(number, old, None, kind="value", dim=None, source_name=source, **columns)


def test_a_number_that_is_set_again_became_symbolic_for_nothing(make):
    rows = [value(1, "self.temperature", "4.85")]
    created = symbol(1, source="L['self'].temperature")
    assert only(sized(make, rows, symbols=[created])).rule == "rc-auto-dynamic"
    set_again = pin(1, "4.7", source="L['self'].temperature")
    assert said(sized(make, rows, symbols=[created, set_again])) == []
    assert said(sized(make, rows, symbols=[symbol(1)])) == []


def test_an_int_of_several_compiled_instances_is_no_counter(make):
    hint = {"kind": "module_int", "dim": None, "source_name": "self.layer_idx"}
    rows = [recompile(n, n - 1, None, **hint) for n in (1, 2)]
    instances = [region(region_id=n) for n in range(3)]
    (finding,) = rc_module_int_attr.check(sized(make, rows, regions=instances))
    assert "differs between instances" in finding.title
    (finding,) = rc_module_int_attr.check(sized(make, rows))
    assert "changes between calls" in finding.title


@pytest.mark.parametrize(
    ("source", "old", "words"),
    [
        ("self.param_groups[0]['lr']", "0.1", "learning rate as a tensor"),
        ("self.param_groups[0]['momentum']", "0.95", "cycle_momentum=False"),
        ("self.temperature", "4.85", "buffer tensor"),
        ("G['STEP']", "3", "Pass the global STEP as an argument"),
        ("mode", "'fast'", "compile one function for each value"),
        ("n", "3", "pass it as a tensor"),
    ],
)
def test_the_remedy_fits_what_the_value_is(make, source, old, words):
    rows = [value(n, source, old) for n in (1, 2)]
    (finding,) = rc_python_constant.check(sized(make, rows))
    assert words in finding.what_to_do


@pytest.mark.parametrize(
    ("source", "lines", "line"),
    [
        ("self.param_groups[0]['betas'][0]", [33], 33),
        ("self.param_groups[0]['betas'][0]", [33, 44], 5),  # which of them is not known
        ("self.param_groups[0]['lr']", [33], 5),
    ],
)
def test_the_scheduler_is_named_that_changes_more_than_the_rate(make, source, lines, line):
    rows = [value(n, source, "0.95") for n in (1, 2)]
    noted = [{"kind": "momentum", "file": FILE, "line": each} for each in lines]
    (finding,) = rc_python_constant.check(sized(make, rows, noted_lines=noted))
    places = [finding.location, *finding.also_at]
    assert (finding.location.line, finding.location in places[1:]) == (line, False)


@pytest.mark.parametrize(
    ("source", "limited", "remedy"),
    [
        ("self.param_groups[0]['betas'][0]", True, ("eager=step",)),
        ("self.param_groups[0]['betas'][0]", False, ()),
        ("self.param_groups[0]['lr']", True, ()),
        ("n", True, ()),
    ],
)
def test_an_optimizers_step_is_left_to_eager_beyond_the_limit(make, source, limited, remedy):
    rows = [value(n, source, "0.95") for n in (1, 2)]
    warned = [{"kind": "recompile_limit", "file": FILE, "line": 5, "message": "limit (8)"}]
    more = {"warnings": warned} if limited else {}
    tables = sized(make, rows, regions=[region(region_id=0, name="step")], **more)
    (finding,) = rc_python_constant.check(tables)
    assert finding.remedy == remedy


@pytest.mark.parametrize(
    ("source", "old", "confidence"),
    [
        ("self.param_groups[0]['lr']", "0.1", "derived"),
        ("mode", "'fast'", "derived"),
        ("n", "3", "measured"),
    ],
)
def test_what_a_remedy_compiles_is_no_gain(make, source, old, confidence):
    rows = [value(n, source, old) for n in (1, 2)]
    (finding,) = rc_python_constant.check(sized(make, rows))
    assert finding.confidence == confidence
    assert ("at most" in finding.cost.about) == (confidence == "derived")


@pytest.mark.parametrize(
    ("rows", "symbols", "words"),
    [
        (changes(8, 12, 16, 20), [pin(n, 1) for n in (1, 2, 3)], "Do not decide on the size"),
        (changes(8, 12, 16, guard=HINT), [], "parameter.data"),
    ],
)
def test_the_limit_repeats_the_remedy_of_its_cause(make, rows, symbols, words):
    warned = [{"kind": "recompile_limit", "file": FILE, "line": 5, "message": "limit (8)"}]
    tables = sized(make, rows, symbols=symbols, warnings=warned)
    (finding,) = rc_limit_hit.check(tables)
    assert words in finding.what_to_do


LIMIT = "torch._dynamo.config.recompile_limit"


@pytest.mark.parametrize(
    ("ran", "missed", "kernel_ms", "remedy", "words"),
    [
        ("0/0", 1.0, 0.2, (f"{LIMIT}=64",), "about 12 values"),  # 2 of 3 calls fit 8 variants
        ("0/0", 15.0, 0.1, (), "does not hold them"),  # about 68, more than the limit
        ("0/0", 0.0, 0.2, (), "every call in the profile used a variant"),
        ("0/0", 1.0, 1.2, ("eager=Net",), "takes 0.600 ms, in eager 0.500 ms"),
        ("5/0", 1.0, 0.2, (), "no call in the profile used a variant"),  # another function's
        (None, 1.0, 0.2, ("eager=Net",), "leave Net in eager"),
    ],
)
def test_a_higher_limit_is_offered_where_it_holds_the_values_that_come_back(
    make, ran, missed, kernel_ms, remedy, words
):
    kernel = {"stance": "compiled", "clock": "host", "compile_id": "0/0", "ms": kernel_ms}
    cells = [
        {"region_id": 0, "part": "cache_lookup", "compile_id": None, "calls": missed},
        {"region_id": 0, "part": "cache_lookup", "compile_id": ran, "calls": 2.0},
        {"region_id": 0, "part": "compiled_region", "compile_id": ran, "calls": 2.0},
    ]
    warned = [{"kind": "recompile_limit", "file": FILE, "line": 5, "message": "limit (8)"}]
    times = [{"eager_ms": 1.5, "compiled_ms": 2.0}]
    tables = sized(
        make,
        changes(*range(10, 18), kind="length"),
        warnings=warned,
        speedups=times,
        kernel_groups=[kernel],
        call_path=cells if ran else cells[:1] if missed else [],
        step_counts=[{"stance": "compiled", "compiled_regions": 2.0 if ran else 0.0}],
    )
    (finding,) = rc_limit_hit.check(tables)
    assert finding.remedy == remedy
    assert words in finding.what_to_do


def test_only_the_calls_of_its_own_callable_come_after_the_limit(make):
    warned = [{"kind": "recompile_limit", "file": FILE, "line": 5, "message": "limit (8)"}]
    other = region(region_id=1, target_file="/u/other.py", calls=70000)
    tables = sized(make, changes(8, 12, 16), regions=[region(calls=53), other], warnings=warned)
    (finding,) = rc_limit_hit.check(tables)
    assert "50 calls" in finding.explanation


def symbol(number=0, source="L['x'].size()[0]"):
    name = {"symbol": "s7" if "size" in source or "k" in source else "zf7"}
    return {
        "compile_key": f"cold:1:0:0/{number}", "event": "create", "source_name": source, **name,
    }  # fmt: skip


def sizes_met(*texts, calls=40):
    return [{"pid": 1, "region_id": 0, "sizes": text, "calls": calls} for text in texts]


@pytest.mark.parametrize(
    ("met", "symbols", "named"),
    [
        (sizes_met("32x64"), [symbol()], True),
        (sizes_met("32x64", "16x64"), [symbol()], False),
        (sizes_met("32x64", calls=16), [symbol()], True),
        (sizes_met("32x64", calls=5), [symbol()], False),
        (sizes_met("32x64"), [], False),
        (sizes_met("32x64"), [symbol(), symbol(source="L['k']")], False),
        (sizes_met("32x64"), [symbol(), symbol(source="L['self'].eps")], True),
        (sizes_met("32x64"), [symbol(), pin(0, 32)], False),
    ],
)
def test_dynamic_for_one_size_is_information(make, met, symbols, named):
    tables = sized(make, [], regions=[region(dynamic="True")], symbols=symbols, input_sizes=met)
    found = list(rc_needless_dynamic.check(tables))
    assert [finding.severity for finding in found] == (["info"] if named else [])


@pytest.mark.parametrize(
    ("dynamic", "preview", "ran", "named"),
    [
        ("None", 1, "0/1", True),
        ("None", 1, "0/0", False),  # steps run code for their own sizes
        ("None", 3, "0/1", False),
        ("False", 1, "0/1", False),
        ("True", 1, "0/1", False),
    ],
)
def test_one_call_that_makes_sizes_symbolic_is_information(make, dynamic, preview, ran, named):
    met = [*sizes_met("4x64"), *sizes_met("2x32", calls=preview)]
    tables = sized(
        make,
        [],
        regions=[region(dynamic=dynamic)],
        symbols=[{**symbol(), "compile_id": "0/1"}],
        input_sizes=met,
        matched_kernels=[{"stance": "compiled", "compile_id": ran, "name": "cpp_fused_0"}],
    )
    found = list(rc_needless_dynamic.check(tables))
    assert [finding.remedy for finding in found] == ([("dynamic=False",)] if named else [])
    assert all("A call with tensors of 2x32 made " in f.title for f in found)


def test_a_branch_on_a_size_that_had_become_symbolic_is_told_from_its_first_change(make):
    branch = recompile(2, None, None, kind="shape_guard", guard="x.size()[0] <= x.size()[1]")
    found = said(sized(make, [recompile(1, 16, 32), branch]))
    assert [(f.rule, f.severity) for f in found] == [
        ("rc-auto-dynamic", "info"), ("rc-dim-specialized", "info"),
    ]  # fmt: skip


def test_a_size_that_was_marked_and_is_set_all_the_same_is_an_error(make):
    message = (
        "Constraints violated (L['x'].size()[1])! …\n  - You marked L['x'].size()[1] as dynamic "
        "but your code specialized it to be a constant (16). If you're using mark_dynamic, …"
    )
    ended = {
        "error_type": "ConstraintViolationError", "error_message": message, "error_file": FILE,
        "error_line": 40, "error_function": "main",
    }  # fmt: skip
    tables = sized(make, [], symbols=[pin(0, 16, source="L['x'].size()[1]")], runs=[ended])
    (finding,) = rc_dim_specialized.check(tables)
    assert (finding.severity, finding.location.line) == ("error", 9)
    assert "maybe_mark_dynamic" in finding.what_to_do
    (finding,) = rc_dim_specialized.check(sized(make, [], runs=[ended]))
    assert finding.location.line == 40


@pytest.mark.parametrize(
    ("met", "shown"),
    [
        (("0.1", "0.09997532801828658"), "0.1 → 0.09998 → …"),
        (("0.04999999999998629", "0.04999999999994516"), "0.05 → 0.0499999999999 → …"),
        (("<class '__main__.A'>", "3"), "A → 3 → …"),
    ],
)
def test_numbers_have_the_digits_that_tell_them_apart(met, shown):
    rows = tuple(value(n, "lr", old) for n, old in enumerate(met, 1))
    assert Cause(rows).values() == shown

"""Rules about recompiles on hand-made rows: which rule a recompile belongs to, and what it says."""

import pytest

from traceview.rules import (
    rc_backend_mismatch,
    rc_container_length,
    rc_global_state,
    rc_object_identity,
    rc_python_constant,
    rc_tensor_meta,
)

MODULES = (
    rc_object_identity, rc_container_length, rc_tensor_meta, rc_global_state, rc_backend_mismatch,
)  # fmt: skip
FILE = "/u/train.py"
INNER = ', {"file": "/u/train.py", "line": 5, "function": "forward"}]'
INFERRING = "DispatchKeySet(CPU, BackendSelect, ADInplaceOrView)"  # a plain tensor in that mode
PLAIN = "DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)"


def recompile(number, kind, **columns):
    return {
        "compile_key": f"cold:1:0:0/{number}", "compile_id": f"0/{number}", "co_name": "forward",
        "co_filename": FILE, "co_firstlineno": 5, "order": 0, "kind": kind,
        "failed_compile_id": f"0/{number - 1}", "guard": "a guard", "source_name": "x", **columns,
    }  # fmt: skip


def again(kind, times=2, **columns):
    return [recompile(n, kind, **columns) for n in range(1, times + 1)]


def of_object(kind, number=1, source="fn"):
    guard = f"___check_obj_id({source}, 1{number}), type=<class '{kind}'>"
    return recompile(number, "obj_id", source_name=source, guard=guard, old=f"id 1{number}")


def backend(number, old, new):
    return recompile(number, "backend", source_name=None, old=old, new=new)


def family(make, row):
    return make(recompiles=[row])["recompile_causes"]["family"].item()


def found(tables):
    return [finding for module in MODULES for finding in module.check(tables)]


def only(tables):
    (finding,) = found(tables)
    return finding


def mode(new):
    return {"kind": "dispatch_keys", "old": PLAIN, "new": new}


@pytest.mark.parametrize(
    ("row", "whose"),
    [
        ({"kind": "value", "source_name": "mode"}, "constant"),
        ({"kind": "value", "source_name": "self.training"}, "state"),
        ({"kind": "type_id"}, "identity"),
        ({"kind": "length"}, "length"),
        ({"kind": "keys"}, "length"),
        ({"kind": "size"}, "size"),
        ({"kind": "rank"}, "tensor"),
        (mode("DispatchKeySet(CPU, BackendSelect, ADInplaceOrView)"), "state"),
        (mode("DispatchKeySet(CPU, BackendSelect)"), "state"),
        (
            mode("DispatchKeySet(Meta, BackendSelect, ADInplaceOrView, AutogradMeta)"),
            "tensor",
        ),
        (
            mode("DispatchKeySet(CPU, BackendSelect, Conjugate, ADInplaceOrView, AutogradCPU)"),
            "tensor",
        ),
        (mode(None), "tensor"),
        ({"kind": "other"}, "other"),
    ],
)
def test_each_guard_belongs_to_one_rule(make, row, whose):
    assert family(make, {**recompile(1, "other"), **row}) == whose


@pytest.mark.parametrize(
    ("kind", "whose"),
    [
        ("function", "identity"),
        ("code", "identity"),
        ("builtin_function_or_method", "identity"),
        ("__main__.make.<locals>.Config", "identity"),
        ("torch.amp.autocast_mode.autocast", "identity"),
        ("__main__.Mode", "constant"),
        ("NoneType", "constant"),
    ],
)
def test_an_object_is_a_constant_where_it_is_an_enums_member(make, kind, whose):
    assert family(make, of_object(kind)) == whose


@pytest.mark.parametrize(
    ("rows", "rule", "single"),
    [
        ([of_object("function", n) for n in (1, 2)], "rc-object-identity", []),
        (again("length", old="1"), "rc-container-length", []),
        (
            [backend(n, f"f (id=0x{n})", f"f (id=0x{n + 1})") for n in (1, 2)],
            "rc-backend-mismatch", [],
        ),
        (again("dtype", old="Float", new="Double"), "rc-tensor-meta", ["info"]),
        (again("global_state", source_name="grad_mode"), "rc-global-state", ["info"]),
    ],
)  # fmt: skip
def test_two_recompiles_are_a_warning_and_one_is_none(make, rows, rule, single):
    two = only(make(recompiles=rows))
    assert (two.rule, two.severity) == (rule, "warning")
    assert two.about == {f"{FILE}:5"}
    assert (two.location.file, two.location.line) == (FILE, 5)
    assert [finding.severity for finding in found(make(recompiles=rows[:1]))] == single


def test_the_threshold_is_a_setting(make):
    tables = make(recompiles=again("length", 3))
    assert len(list(rc_container_length.check(tables, fewest_recompiles=3))) == 1
    assert list(rc_container_length.check(tables, fewest_recompiles=4)) == []


def test_ranks_do_the_same_work_and_count_once(make):
    rows = [
        recompile(1, "global_state", compile_key=f"cold:{rank}:0:0/1", rank=rank) for rank in (0, 1)
    ]
    compiles = [
        {"compile_key": f"cold:{rank}:0:0/1", "rank": rank, "duration_us": 1e6} for rank in (0, 1)
    ]
    finding = only(make(recompiles=rows, compiles=compiles))
    assert (finding.severity, finding.cost.seconds) == ("info", 1.0)
    assert "once" in finding.title


def test_code_behind_a_break_is_compiled_with_its_function_and_counts_once(make):
    rest = {
        "compile_key": "k", "co_name": "torch_dynamo_resume_in_forward_at_9", "co_firstlineno": 9,
    }  # fmt: skip
    rows = [entry for row in again("dtype", 1) for entry in (row, {**row, **rest})]
    compiles = [{"co_name": "forward", "co_filename": FILE, "co_firstlineno": 5}] * 2
    finding = only(make(recompiles=rows, compiles=compiles))
    assert (finding.severity, finding.about) == ("info", {f"{FILE}:5", f"{FILE}:9"})
    other = {"co_name": "forward", "co_filename": FILE, "co_firstlineno": 70}
    assert len(found(make(recompiles=rows, compiles=[*compiles, other]))) == 2, "whose rest is it?"


def test_a_function_is_known_by_its_code_to_torch_only(make):
    rows = [of_object("code", n, "fn.__code__") for n in (1, 2)] + [of_object("function", 3)]
    finding = only(make(recompiles=rows))
    assert finding.title == (
        "forward() recompiled 3 times: fn is not the same function in every call"
    )


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        (("m.make.<locals>.P", "m.make.<locals>.P"), "has a class that is defined again"),
        (("list", "tuple"), "does not have the same type"),
        (("m.Net", "m.Other"), "does not have the same type"),
    ],
)
def test_types_that_change_and_classes_that_are_made_anew(make, classes, words):
    rows = [
        recompile(n, "type_id", source_name="cfg", old=f"<class '{name}'>",
                  guard=f"___check_type_id(cfg, {n}), type=<class '{name}'>")
        for n, name in enumerate(classes, 1)
    ]  # fmt: skip
    assert words in only(make(recompiles=rows)).title


def test_a_tensor_that_is_sometimes_none_is_a_value_that_changes(make):
    rows = again("type_id", old="a tensor type", new="<class 'NoneType'>")
    rows.append(recompile(9, "value", source_name=rows[0]["source_name"], old="None"))
    assert found(make(recompiles=rows)) == []
    (finding,) = rc_python_constant.check(make(recompiles=rows))
    assert finding.title.startswith("forward() recompiled 3 times: x changes (a tensor → None")
    assert "a tensor → None" in finding.explanation
    assert finding.what_to_do.startswith("Pass a tensor as x each time")


def test_a_tensor_that_is_sometimes_a_number_has_two_types(make):
    rows = again("type_id", old="a tensor type", new="<class 'float'>")
    finding = only(make(recompiles=rows))
    assert "x does not have the same type" in finding.title
    assert "(met: Tensor, float)" in finding.explanation
    assert "converted before the call" in finding.what_to_do


def test_an_object_that_is_gone_takes_its_code_with_it(make):
    guard = "Cache line invalidated because m.forward got deallocated"
    finding = only(make(recompiles=again("obj_id", source_name="m.forward", guard=guard)))
    assert "is gone" in finding.explanation


@pytest.mark.parametrize(("olds", "verb"), [(("1", "2", "3"), "grows"), (("4", "2"), "changes")])
def test_a_cache_that_grows(make, olds, verb):
    rows = [recompile(n, "length", source_name="cache", old=o) for n, o in enumerate(olds, 1)]
    finding = only(make(recompiles=rows))
    assert finding.title.endswith(f": the length of cache {verb}")
    assert "cache.index_copy_(" in finding.snippet.text
    compile(finding.snippet.text, "snippet", "exec")


def test_a_history_is_appended_to_outside(make):
    rows = again("length", source_name="losses", old="1", user_code="losses.append(loss.item())")
    finding = only(make(recompiles=rows))
    assert finding.what_to_do.startswith("Return what is added to losses")
    assert finding.snippet is None


def test_the_guard_tree_tells_where_a_tensor_is_read(make):
    guards = [
        {"compile_key": "cold:1:0:0/0", "source_name": "L['self']", "file": "train.py", "line": 3},
        {"compile_key": "cold:1:0:0/0", "source_name": "L['x']", "file": "nn/linear.py", "line": 9},
        {"compile_key": "cold:1:0:0/0", "source_name": "L['x']", "file": "u/train.py", "line": 8},
        {"compile_key": "cold:1:0:0/1", "source_name": "L['x']", "file": "u/train.py", "line": 7},
    ]
    finding = only(make(recompiles=again("dtype"), guards=guards))
    assert (finding.location.file, finding.location.line) == (FILE, 8)


def test_a_dict_is_read_where_its_entries_are(make):
    guards = [
        {"compile_key": "cold:1:0:0/0", "source_name": "L['cfg']['a']", "file": FILE, "line": 8}
    ]
    rows = again("length", source_name="cfg")
    assert only(make(recompiles=rows, guards=guards)).location.line == 8


def test_the_loop_over_a_dict_comes_before_what_is_done_with_its_entries(make):
    names = {"L['self'].past[0]": 8, "list(dict.keys(L['self'].past))[0]": 7, "L['self']": 6}
    guards = [
        {"compile_key": "cold:1:0:0/0", "source_name": name, "file": FILE, "line": line}
        for name, line in names.items()
    ]
    rows = again("length", source_name="self.past")
    assert only(make(recompiles=rows, guards=guards)).location.line == 7


def test_what_is_read_in_a_library_was_reached_from_the_users_line(make):
    guards = [
        {"compile_key": "cold:1:0:0/0", "source_name": name, "file": file, "line": line}
        for name, file, line in (
            ("L['self']", FILE, 6),
            ("L['self'].net", FILE, 7),
            ("L['self'].network", FILE, 8),
            ("L['self'].net._parameters['w']", "nn/modules/linear.py", 134),
        )
    ]
    rows = again("requires_grad", source_name="self.net._parameters['w']")
    assert only(make(recompiles=rows, guards=guards)).location.line == 7


def test_dtypes_have_their_python_names(make):
    rows = [
        recompile(1, "dtype", old="unsigned char", new="Double"),
        recompile(2, "dtype", old="Double", new="Float"),
    ]
    finding = only(make(recompiles=rows))
    assert "(uint8, float64, float32)" in finding.title
    assert finding.snippet.text.startswith("x = x.to(torch.float32)")


def test_one_property_of_many_tensors_is_one_finding(make):
    rows = [
        recompile(
            n,
            "requires_grad",
            old="False",
            source_name=f"self.net._modules['{n}']._parameters['weight']",
        )
        for n in (1, 2, 3)
    ]
    finding = only(make(recompiles=rows))
    assert finding.title.startswith(
        "forward() recompiled 3 times: requires_grad of self.net[1].weight and 2 others changes"
    )
    assert finding.snippet is None


def test_what_changes_of_torchs_state_is_one_finding_with_its_calls(make):
    rows = [
        recompile(1, "global_state", source_name="grad_mode"),
        recompile(2, **mode("DispatchKeySet(CPU, BackendSelect, ADInplaceOrView)")),
        recompile(3, "global_state", source_name="autocast(cpu)_enabled autocast_cache_enabled"),
        recompile(4, "value", source_name="self.body.training", old="True"),
    ]
    at = '[{{"file": "/u/train.py", "line": {}, "function": "serve"}}, {{"file": "/u/x.py"}}]'
    compiles = [
        {"compile_key": f"cold:1:0:0/{n}", "stack": at.format(line)}
        for n, line in ((1, 40), (2, 44), (3, 40))
    ]
    finding = only(make(recompiles=rows, compiles=compiles))
    assert finding.title == (
        "forward() recompiled 4 times: grad mode, inference mode, autocast and train() or eval() "
        "differ between calls"
    )
    assert finding.location.line == 40
    assert [place.line for place in finding.also_at] == [44]


def test_an_argument_from_outside_inference_mode_is_not_a_call_from_outside(make):
    made = {**mode("DispatchKeySet(CPU, BackendSelect)"), "old": INFERRING}
    finding = only(make(recompiles=[recompile(n, **made) for n in (1, 2)]))
    assert "inference mode (of the call or of its tensors) differs between calls" in finding.title
    assert "create the arguments in the same mode for every call" in finding.what_to_do
    left = only(make(recompiles=[recompile(n, **mode(INFERRING)) for n in (1, 2)]))
    assert "recompiled twice: inference mode differs" in left.title
    assert "create the arguments" not in left.what_to_do


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("grad_mode", "Nothing, where both states are needed"),
        ("allow_tf32", "Set it once, before the first"),
    ],
)
def test_one_more_state_is_often_meant(make, name, words):
    finding = only(make(recompiles=again("global_state", 1, source_name=name)))
    assert finding.what_to_do.startswith(words)


def test_a_state_changes_for_all_functions_below_a_region(make):
    inner = {"co_name": "inner", "co_filename": FILE, "co_firstlineno": 60}
    rows = [
        recompile(1, "global_state", source_name="grad_mode"),
        recompile(1, "global_state", source_name="grad_mode", compile_key="cold:1:0:1/1", **inner),
    ]
    outer = {"co_name": "forward", "co_filename": FILE, "co_firstlineno": 5}
    compiles = [
        {"compile_key": f"cold:1:0:{n}/0", "pid": 1, "started_us": 10.0 + n, **code}
        for n, code in enumerate((outer, inner))
    ]
    calls = [{"pid": 1, "region_id": 0, "started_us": 0.0, "host_ms": 1.0, "compiles_inside": 2}]
    tables = make(recompiles=rows, compiles=compiles, calls=calls)
    finding = only(tables)
    assert (finding.severity, finding.about) == ("info", {f"{FILE}:5", f"{FILE}:60"})
    assert len(found(make(recompiles=rows, compiles=compiles))) == 2


def test_a_state_that_was_compiled_for_before_is_not_what_changed(make):
    """Training, evaluation, and then training with another size: one state more, not two."""
    rows = [
        recompile(1, "global_state", source_name="grad_mode"),
        recompile(2, "global_state", source_name="grad_mode"),
        recompile(2, "size", order=1, failed_compile_id="0/0"),
    ]
    assert only(make(recompiles=rows)).severity == "info"


WRAPPED = "_TorchCompileWrapper(compiler='{}', dynamic=None) (id=0x{})"


@pytest.mark.parametrize(
    ("old", "new", "fires"),
    [
        (WRAPPED.format("mine", "7f3b"), WRAPPED.format("mine", "7faa"), True),
        (WRAPPED.format("eager", "7f3b"), WRAPPED.format("aot_eager", "7faa"), False),
        ("_TorchCompileInductorWrapper (id=0x1)", "_TorchCompileInductorWrapper (id=0x2)", False),
        (None, None, False),
    ],
)
def test_backends_of_one_make_are_an_accident(make, old, new, fires):
    rows = [backend(n, old, new) for n in (1, 2)]
    assert bool(found(make(recompiles=rows))) is fires


@pytest.mark.parametrize(("calls", "fires"), [(2, False), (9, True)])
def test_older_torch_describes_no_backend(make, calls, fires):
    region = {"target_file": FILE, "target_line": 5, "call_file": FILE, "call_line": 30,
              "backend_is_callable": True, "compile_calls": calls}  # fmt: skip
    rows = [backend(n, None, None) for n in (1, 2)]
    tables = make(recompiles=rows, regions=[region])
    assert bool(found(tables)) is fires


def test_the_backend_is_made_where_torch_compile_is_called(make):
    rows = [backend(n, WRAPPED.format("mine", n), WRAPPED.format("mine", n + 1)) for n in (1, 2)]
    region = {"target_file": FILE, "target_line": 5, "call_file": FILE, "call_line": 30}
    regions = [region, {**region, "compile_calls": 400}, {**region, "call_line": 60}]
    finding = only(make(recompiles=rows, regions=regions))
    assert finding.location.line == 30
    assert finding.evidence[0].text == "torch.compile at train.py:30 was called 401 times"
    assert "(mine)" in finding.title


def test_what_looking_among_variants_takes_is_shown_where_it_was_profiled(make):
    row = {"part": "cache_lookup", "entries": 3, "calls": 0.5, "ms": 0.004}
    tables = make(
        recompiles=again("global_state", source_name="grad_mode"),
        compiles=[
            {"compile_id": f"0/{n}", "co_filename": FILE, "co_firstlineno": 5} for n in (0, 1)
        ],
        call_path=[
            {**row, "compile_id": "0/0"},
            {**row, "compile_id": "0/1"},
            {**row, "compile_id": "1/0", "ms": 9.0},
        ],
    )
    text = "finding one of 3 variants takes 8.00 µs per call, as profiled"
    assert only(tables).evidence[-1].text == text


def test_what_a_set_holds_is_one_cause(make):
    asked = recompile(
        1, "keys", guard="set.__contains__(words, 'haste')", source_name="words", old=None
    )
    whole = recompile(2, "value", guard="words == {'echo', 'ward'}", source_name="words")
    finding = only(make(recompiles=[asked, whole]))
    assert finding.title.endswith(": the members of words change")
    assert "tensors" in finding.what_to_do
    assert finding.snippet is None


@pytest.mark.parametrize(
    ("guard", "whose"),
    [
        ("d == {'a', 'b'}", "length"),
        ("d == frozenset({1, 2})", "length"),
        ("d == {'a': 1}", "constant"),
        ("d == 'set(1)'", "constant"),
    ],
)
def test_a_set_is_told_from_a_dict(make, guard, whose):
    assert family(make, recompile(1, "value", source_name="d", guard=guard)) == whose


def test_an_argument_that_another_function_reads_first_is_its_callers(make):
    stack = '[{"file": "/u/train.py", "line": 40, "function": "main"}]'
    compiles = [
        {"compile_key": f"cold:1:0:0/{n}", "compile_id": f"0/{n}", "co_filename": FILE,
         "co_firstlineno": 5, "co_name": "forward", "stack": stack.replace("]", "") + INNER}
        for n in (0, 1, 2)
    ]  # fmt: skip
    rows = again("requires_grad", source_name="rough", old="False", new="True")
    for file, line in (("/u/shade.py", 11), (FILE, 7)):
        guards = [
            {"compile_key": f"cold:1:0:0/{n}", "source_name": "L['rough']", "file": file,
             "line": line} for n in (0, 1)
        ]  # fmt: skip
        sources = [{"file": FILE}, {"file": "/u/shade.py"}]
        tables = make(recompiles=rows, compiles=compiles, guards=guards, sources=sources)
        finding = only(tables)
        expected = (FILE, 40) if file != FILE else (FILE, 7)
        assert (finding.location.file, finding.location.line) == expected
        assert (finding.inside is not None) == (file != FILE)

"""Rules about outputs, on rows made by hand: what is a rounding, what a mistake, what neither."""

import pytest

from traceview.rules import (
    acc_backend_bug,
    acc_frozen_weights,
    acc_hook_ignored,
    acc_lost_weights,
    acc_low_precision,
    acc_rng,
    acc_unlike_eager,
    run_rules,
)
from traceview.rules.registry import catalogue

REGION = {
    "pid": 1, "region_id": 0, "name": "Net", "call_file": "/u/train.py", "call_line": 7,
    "call_function": "main", "target_file": "/u/net.py", "target_line": 3,
}  # fmt: skip
RULES = [rule for rule in catalogue() if "output_verdicts" in rule.needs]


WHOLE = {
    "dtype": "int64", "differing": 900, "scale": None, "max_abs_diff": None, "rmse": None,
    "eager_rmse": None, "rms_diff": None,
}  # fmt: skip


def check(run, backend="inductor", *, same=True, output="output", **more):
    row = {
        "pid": 1, "region_id": 0, "run": run, "backend": backend, "output": output,
        "dtype": "float32", "elements": 4096, "max_abs_diff": 1e-6, "rms_diff": 1e-7, "scale": 1.0,
        "rmse": 1e-7, "eager_rmse": 1e-7, "cosine": 1.0, "differing": 0, "same": same,
    }  # fmt: skip
    return row | more


def off(run, backend="inductor", **more):
    far = {"max_abs_diff": 3.0, "rms_diff": 0.8, "rmse": 0.8, "cosine": 0.4}
    return check(run, backend, same=False, **{**far, **more})


@pytest.fixture
def tables(make):
    def build(*checks, draws_random=False, compared=True, why=None, trials=True, **more):
        told = {
            "pid": 1, "region_id": 0, "compared": compared, "why": why, "reference": "float64",
            "draws_random": draws_random,
        }  # fmt: skip
        found = {"runs": [{"pid": 1}], "regions": [REGION], **more}
        if trials:
            found["output_trials"] = [told]
        if checks:
            found["output_checks"] = list(checks)
        return make(**found)

    return build


def found_in(tables):
    return [(f.rule, f.severity) for f in run_rules(tables, RULES)[0]]


def test_outputs_that_agree_are_not_spoken_of(tables):
    assert found_in(tables(check("eager_again", None), check("compiled"))) == []


def test_a_difference_that_float64_does_not_tell_apart_is_information(tables):
    unlike = {"dtype": "bfloat16", "max_abs_diff": 0.43, "rms_diff": 0.05, "rmse": 0.02}
    (finding,) = acc_low_precision.check(tables(check("compiled", **unlike, eager_rmse=0.05)))
    assert finding.severity == "info"
    assert "0.43" in finding.title
    assert "closer to float64" in finding.title
    assert finding.location.line == 7
    assert finding.about == {"/u/net.py:3"}
    assert "RMSE against float64 0.02, of eager 0.05" in finding.evidence[0].text
    assert finding.cost.ms_per_step is finding.cost.seconds is None


def test_a_difference_that_nobody_notices_is_not_said(tables):
    row = check("compiled", dtype="bfloat16", rms_diff=0.01, rmse=0.01, eager_rmse=0.01)
    assert found_in(tables(row)) == []
    assert list(acc_low_precision.check(tables(row), noticeable_share=0.005))


def test_much_less_exact_than_eager_is_a_warning_if_roundings_explain_it(tables):
    worse = {"dtype": "float16", "rms_diff": 0.04, "rmse": 0.04, "eager_rmse": 0.005}
    rungs = [check("ladder", backend) for backend in ("eager", "aot_eager", "inductor")]
    found = tables(check("compiled", same=False, **worse), *rungs)
    assert found_in(found) == [("acc-low-precision", "warning")]
    (finding,) = acc_low_precision.check(found)
    assert "8.0 times as far" in finding.title
    assert "TORCHINDUCTOR_EMULATE_PRECISION_CASTS=1" in finding.what_to_do
    assert list(acc_low_precision.check(found, worse_times=9.0)) == []
    assert found_in(tables(check("compiled", same=False, **worse))) == [], "no ladder, no claim"


def test_other_random_numbers_are_information_and_nothing_else(tables):
    rows = (check("eager_again", None), off("compiled"), check("fallback_random"))
    assert found_in(tables(*rows, draws_random=True)) == [("acc-rng", "info")]
    (finding,) = acc_rng.check(tables(*rows, draws_random=True))
    assert finding.snippet.text == "torch._inductor.config.fallback_random = True"
    assert found_in(tables(*rows, draws_random=False)) == []


def test_random_numbers_do_not_hide_a_mistake(tables):
    rows = (off("compiled"), off("fallback_random"), check("ladder", "eager"), off("ladder"))
    assert found_in(tables(*rows, draws_random=True)) == [("acc-backend-bug", "error")]


def test_the_first_wrong_stage_is_named(tables):
    rows = (
        check("eager_again", None),
        off("compiled"),
        check("ladder", "eager"),
        check("ladder", "aot_eager"),
        off("ladder", "aot_eager_decomp_partition"),
    )
    (finding,) = acc_backend_bug.check(tables(*rows))
    assert finding.title.endswith('first with backend="aot_eager_decomp_partition"')
    assert 'backend="aot_eager", which is right' in finding.what_to_do
    assert "REPRO_AFTER=dynamo" in finding.snippet.text
    texts = [row.text for row in finding.evidence]
    assert [text.endswith(": right") for text in texts] == [True, True, False]
    assert finding.remedy == ("backend=aot_eager",)


def test_at_inductor_the_bisector_is_named(tables):
    (finding,) = acc_backend_bug.check(tables(off("compiled"), off("ladder")))
    assert "torch._inductor.compiler_bisector" in finding.snippet.text
    assert "TORCHDYNAMO_REPRO_AFTER=aot TORCHDYNAMO_REPRO_LEVEL=4" in finding.snippet.text
    assert finding.what_to_do.startswith("Run this callable in eager")
    assert finding.remedy == ("eager=Net",)


@pytest.mark.parametrize(
    "row",
    [
        {"differing": 5, "rmse": 0.0},
        {"rmse": None, "eager_rmse": None, "rms_diff": 0.5},
        {"why": "in eager alone", "max_abs_diff": None, "rmse": None, "rms_diff": None},
        WHOLE,
    ],
    ids=["nan", "without float64", "missing", "whole numbers"],
)
def test_what_no_rounding_explains_is_wrong(tables, row):
    found = tables(off("compiled", **row), off("ladder", **row))
    assert found_in(found) == [("acc-backend-bug", "error")]


def test_what_a_rounding_may_explain_is_not_called_wrong(tables):
    row = {"rmse": 0.01, "rms_diff": 0.01, "eager_rmse": 0.002}
    rows = (off("compiled", **row), off("ladder", **row))
    assert found_in(tables(*rows)) == []
    assert list(acc_backend_bug.check(tables(*rows), wrong_share=0.001))


def test_ten_times_eagers_error_is_no_rounding(tables):
    row = {"rmse": 0.01, "rms_diff": 0.01, "eager_rmse": 1e-7}
    rows = (off("compiled", **row), off("ladder", **row))
    assert found_in(tables(*rows)) == [("acc-backend-bug", "error")]


def test_a_wrong_gradient_of_a_right_output_is_named(tables):
    gradient = {"output": "gradient of weight layers.0.weight", "what": "gradient"}
    rows = [check(run, what="output") for run in ("compiled", "ladder")]
    found = tables(*rows, off("compiled", **gradient), off("ladder", **gradient))
    (finding,) = acc_backend_bug.check(found)
    assert "gives a wrong gradient of weight `layers.0.weight`, first with" in finding.title
    (difference,) = found["output_differences"].to_dicts()
    assert (difference["direction"], difference["stage"]) == ("backward", "inductor")
    assert difference["relative_error"] == pytest.approx(0.8)


def test_a_wrong_output_makes_its_gradient_forward(tables):
    wrong = [off(run, what="output") for run in ("compiled", "ladder")]
    gradient = {"output": "gradient of argument 0", "what": "gradient"}
    found = tables(*wrong, *(off(run, **gradient) for run in ("compiled", "ladder")))
    assert set(found["output_differences"]["direction"]) == {"forward"}
    assert found["output_verdicts"]["direction"].to_list() == ["forward"]


def test_where_eager_does_not_repeat_itself_nothing_is_claimed(tables):
    rows = (off("eager_again", None), off("compiled"), off("ladder", "eager"))
    assert found_in(tables(*rows)) == []


def test_another_order_of_equal_values_is_not_called_wrong(tables):
    indices = {**WHOLE, "output": "output[1]"}
    rows = (check("compiled"), off("compiled", **indices), off("ladder", **indices))
    assert found_in(tables(*rows)) == []


def test_a_run_that_failed_is_no_result(tables):
    failed = check("fallback_random", same=None, output=None, why="CppCompileError")
    rows = (off("compiled"), failed, check("ladder", "eager"), check("ladder", same=None))
    assert found_in(tables(*rows, draws_random=True)) == []


def test_only_the_first_rank_speaks(tables, make):
    ranks = [{**REGION, "rank": rank, "pid": rank + 1} for rank in (0, 1)]
    told = [{"rank": rank, "pid": rank + 1, "region_id": 0, "compared": True} for rank in (0, 1)]
    rows = [off(run) | {"rank": rank, "pid": rank + 1} for rank in (0, 1) for run in RUNS]
    found = make(regions=ranks, output_trials=told, output_checks=rows)
    assert len(list(acc_backend_bug.check(found))) == 1


RUNS = ("compiled", "ladder")
COMMAND = "traceview diagnose --compare-outputs SCRIPT"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_without_a_comparison_the_command_is_named(tables, rule):
    findings, (unchecked,) = run_rules(tables(trials=False), [rule])
    assert findings == ()
    assert unchecked.command == COMMAND
    assert "only --compare-outputs makes one" in unchecked.needs


def test_why_there_was_none_is_said(tables):
    found = tables(compared=False, why="it can't be copied (TypeError)")
    _, unchecked = run_rules(found, RULES)
    assert len(unchecked) == 3
    assert "here it could not be made (it can't be copied (TypeError))" in unchecked[0].needs
    noted = tables(trials=False, notes=[{"what": "comparison of outputs", "why": "interrupted"}])
    assert "(interrupted)" in run_rules(noted, RULES)[1][0].needs


HOOK = {
    "pid": 1, "region_id": 0, "method": "register_forward_pre_hook", "hook": "push",
    "module": "Layer", "path": "layers.1", "file": "/u/train.py", "line": 30, "function": "main",
    "registered_us": 50.0, "compiled_calls": 2, "compiled_runs": 0, "eager_calls": 1,
    "eager_runs": 1, "recompiled": False,
}  # fmt: skip
COMPILED = {"compile_key": "k", "pid": 1, "region_id": 0, "started_us": 10.0}
GUARD = {"compile_key": "k", "source_name": "L['self']._modules['layers']._modules['1'].training"}


def ignored(make, *hooks, compiled=(COMPILED,), guards=()):
    found = {"regions": [REGION], "late_hooks": list(hooks), "compile_regions": list(compiled)}
    return list(acc_hook_ignored.check(make(**found, guards=list(guards))))


def test_a_hook_that_eager_runs_and_older_compiled_code_does_not(make):
    (finding,) = ignored(make, HOOK)
    assert finding.title == (
        "Compiled code does not run the forward-pre hook on layers.1 (train.py:30)"
    )
    assert (finding.severity, finding.confidence) == ("error", "measured")
    assert [(at.file, at.line) for at in finding.also_at] == [("/u/train.py", 7)]
    assert "1 of 1 eager calls, and in 0 of 2 compiled ones" in finding.evidence[0].text


@pytest.mark.parametrize(
    "seen",
    [
        {"compiled_runs": 1},  # its module runs between two graphs
        {"compiled_calls": 0},
        {"eager_runs": 0},  # it is not called at all
        {"recompiled": True},
        {"registered_us": 5.0},  # the graph has it
    ],
)
def test_a_hook_that_compiled_code_runs_or_may_run_is_not_accused(make, seen):
    assert ignored(make, {**HOOK, **seen}) == []


def test_a_compile_of_which_it_is_not_known_whose_it_is_may_have_the_hook(make):
    other = {**COMPILED, "compile_key": "o", "region_id": 5, "started_us": 90.0}
    assert len(ignored(make, HOOK, compiled=(COMPILED, other))) == 1
    assert ignored(make, HOOK, compiled=(COMPILED, {**other, "region_id": None})) == []


def test_a_backward_that_is_compiled_later_does_not_have_the_hook(make):
    later = {**COMPILED, "started_us": 90.0}
    assert ignored(make, HOOK, compiled=(COMPILED, {**later, "is_forward": True})) == []
    assert len(ignored(make, HOOK, compiled=(COMPILED, {**later, "is_forward": False}))) == 1


def test_without_eager_calls_a_guard_shows_that_the_module_is_in_the_graph(make):
    unseen = {**HOOK, "eager_calls": 0, "eager_runs": 0}
    assert ignored(make, unseen) == []
    (finding,) = ignored(make, unseen, guards=(GUARD,))
    assert finding.confidence == "derived"
    assert ignored(make, {**unseen, "path": None}, guards=(GUARD,)) == []


def test_hooks_of_one_line_are_one_finding(make):
    others = [{**HOOK, "path": f"layers.{n}"} for n in range(3)]
    (finding,) = ignored(make, HOOK, *others)
    assert "hook on 3 modules" in finding.title


FROZEN = {
    "pid": 1, "region_id": 0, "weights": 6, "changed": 4, "names": ["a.weight", "a.bias"],
    "frozen_us": 11.0, "changed_us": 50.0, "last_changed_us": 90.0, "step": 9, "stale_calls": 3,
    "file": "/u/train.py", "line": 25, "function": "refresh",
}  # fmt: skip
FREEZING = {"name": "freezing", "file": "/u/train.py", "line": 3, "function": "<module>"}


def stale(make, *graphs, compiled=(COMPILED,), **found):
    found |= {"regions": [REGION], "setting_sites": [FREEZING]}
    frozen = {"frozen_weights": list(graphs), "compile_regions": list(compiled)}
    return list(acc_frozen_weights.check(make(**found, **frozen)))


def test_weights_that_change_after_they_were_frozen(make):
    (finding,) = stale(make, FROZEN, {**FROZEN, "changed": 2})
    assert finding.title.endswith("uses its old weights after they changed (train.py:25)")
    assert (finding.severity, finding.confidence) == ("error", "measured")
    assert finding.location.line == 25
    assert [at.line for at in finding.also_at] == [3, 7]
    assert "4 of 6 frozen weights: a.weight, a.bias, …" in finding.evidence[0].text
    assert "at least 3 compiled calls after" in finding.evidence[1].text


def test_where_the_line_was_not_seen_the_setting_is_the_place(make):
    (finding,) = stale(make, {**FROZEN, "file": None, "line": None, "function": None})
    assert finding.location.line == 3
    assert [at.line for at in finding.also_at] == [7]


def test_frozen_weights_that_no_call_or_a_newer_compile_follows(make):
    assert stale(make, {**FROZEN, "stale_calls": 0}) == []
    newer = {**COMPILED, "started_us": 95.0}
    assert stale(make, FROZEN, compiled=(COMPILED, newer)) == []
    assert stale(make, FROZEN, compiled=(COMPILED, {**newer, "region_id": 7})) != []
    assert stale(make, FROZEN, resets=[{"started_us": 95.0}]) == []
    assert stale(make, FROZEN, resets=[{"started_us": 20.0}]) != []


LOST = {
    "pid": 1, "module": "QNet", "tensors": 6, "loaded": 0, "lost": 6, "prefixed": "given",
    "names": ["_orig_mod.freq", "_orig_mod.phase", "_orig_mod.value.weight"],
    "file": "/u/train.py", "line": 61, "function": "main", "loads": 1, "loaded_later": 0,
}  # fmt: skip


def lost(make, *lines):
    return list(acc_lost_weights.check(make(lost_weights=list(lines))))


def test_a_compiled_modules_keys_load_nothing(make):
    (finding,) = lost(make, LOST, {**LOST, "line": 90, "loads": 33})
    assert finding.title == (
        "load_state_dict(strict=False) loads 0 of 6 tensors into QNet (train.py:61): "
        "keys of a compiled module begin with _orig_mod."
    )
    assert (finding.severity, finding.confidence) == ("error", "measured")
    assert (finding.location.line, [at.line for at in finding.also_at]) == (61, [90])
    assert "6 tensors left out in 33 loads" in finding.evidence[1].text
    assert finding.evidence[0].text.endswith("_orig_mod.phase, _orig_mod.value.weight, …)")
    assert finding.snippet.text == "target.load_state_dict(compiled._orig_mod.state_dict())"


INNER = {"loaded": 4, "lost": 2, "names": ["encoder._orig_mod.weight", "encoder._orig_mod.bias"]}


def test_keys_of_a_compiled_submodule_and_keys_loaded_into_a_compiled_module(make):
    inner, own, own_inner, both = lost(
        make,
        {**LOST, **INNER},
        {**LOST, "prefixed": "own"},
        {**LOST, **INNER, "prefixed": "own", "module": "Net"},
        {**LOST, "prefixed": "both"},
    )
    assert "loads 4 of 6 tensors" in inner.title
    assert inner.title.endswith("keys of a compiled module contain _orig_mod.")
    assert 'replace("_orig_mod.", "")' in inner.snippet.text
    assert "keys of the state dict, and the other side's" in inner.explanation
    assert own.snippet.text == "compiled._orig_mod.load_state_dict(state)"
    assert "to the keys of QNet, and" in own.explanation
    assert own_inner.snippet.text.endswith("model.submodule.compile()")
    assert "to the keys, and" in both.explanation


def test_what_a_later_load_makes_good_is_not_lost(make):
    assert lost(make, {**LOST, "loads": 3, "loaded_later": 3}) == []
    assert len(lost(make, {**LOST, "loads": 3, "loaded_later": 2})) == 1


END = {
    "pid": 1, "region_id": 0, "compared": True, "why": None, "results": 2, "name": "output[1]",
    "dtype": "float32", "relative_error": 0.4, "noise": 1e-6, "low_precision": False,
    "without_cudagraph": None, "operators": [], "constant": "noise_level", "file": "/u/net.py",
    "line": 13, "seconds": 0.1,
}  # fmt: skip


def unlike(make, *ends):
    return list(acc_unlike_eager.check(make(regions=[REGION], end_checks=list(ends))))


def test_compiled_code_that_gives_other_results_at_the_end(make):
    (finding,) = unlike(make, END)
    assert finding.title == (
        "Compiled Net gives other results than eager: output[1] differs by 40 %"
    )
    assert (finding.severity, finding.confidence) == ("error", "measured")
    assert "noise_level() (net.py:13) is marked with assume_constant_result" in finding.explanation
    assert finding.location.line == 13
    assert [at.line for at in finding.also_at] == [7]
    assert "less than 0.01 %" in finding.evidence[0].text
    assert finding.remedy == ("eager=Net",)
    assert finding.is_wrong


def test_a_cudagraph_that_replays_what_has_changed(make):
    own = {"without_cudagraph": 1e-7, "operators": ["inductor.draw", "gates.sharpen"]}
    own["constant"] = None
    (finding,) = unlike(make, {**END, **own})
    assert "Without its cudagraph the same compiled code gives eager's" in finding.explanation
    assert "gates.sharpen (net.py:13) takes some that torch does not see" in finding.explanation
    assert finding.snippet.text.startswith('@torch.library.custom_op("gates::sharpen"')
    assert finding.remedy == ("options.triton.cudagraphs=False",)
    (finding,) = unlike(make, {**END, **own, "without_cudagraph": 0.4})
    assert "Without its cudagraph" not in finding.explanation


def test_without_a_marked_function_the_call_is_the_place(make):
    (finding,) = unlike(make, {**END, "constant": None, "file": None, "line": None})
    assert (finding.location.line, finding.also_at) == (7, ())
    assert "accuracy --bisect" in finding.snippet.text


def test_guards_that_were_left_out_are_the_first_suspect(make):
    end = {**END, "constant": None, "file": None, "line": None}
    region = {**REGION, "options": '{"guard_filter_fn": "<function keep at 0x7f>"}'}
    (finding,) = acc_unlike_eager.check(make(regions=[region], end_checks=[end]))
    assert finding.what_to_do.startswith("Suspect guard_filter_fn (train.py:7) first")
    assert finding.evidence[-1].text == "torch.compile was given guard_filter_fn (train.py:7)"
    assert finding.remedy == ("options.guard_filter_fn=None",)
    (finding,) = acc_unlike_eager.check(
        make(regions=[{**region, "options": '{"guard_filter_fn": null}'}], end_checks=[end])
    )
    assert "Suspect" not in finding.what_to_do


@pytest.mark.parametrize(
    "row",
    [
        {"noise": 0.05},
        {"noise": None},
        {"relative_error": 9e-4, "noise": 0.0},
        {"relative_error": 0.015, "low_precision": True},
        {"relative_error": None},
        {"compared": False},
    ],
)
def test_what_roundings_make_is_no_other_result(make, row):
    assert unlike(make, {**END, **row}) == []
    assert unlike(make, {**END, "relative_error": 0.015}) != []

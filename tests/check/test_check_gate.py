"""A run against its limits: what violates one, and that nothing unchecked passes by itself."""

import itertools

import pytest
from recorded_jobs import diagnosis
from sides import changed, moved, side

from traceview.check import Limits, check
from traceview.check.limits import limits_of, merged, number
from traceview.compare import Side
from traceview.diagnosis.compiler import MOST_COMPILES
from traceview.errors import UsageError
from traceview.reports.check.text import line, summary

HERE = "the command line"


def gate(given, baseline=None, **asked):
    words = {name.replace("_", "-"): value for name, value in asked.items()}
    return check(given, limits_of(words, HERE), baseline)


def lines(checked, status="violated"):
    return [line(result) for result in checked.of(status)]


def bad():
    return side("bad-gb_item")


def test_a_run_within_its_limits_passes():
    checked = gate(bad(), max_breaks=1, max_recompiles=0, min_speedup=1.1, max_compile_seconds=60)
    assert checked.passed
    assert summary(checked) == "passed: 4 limits hold"


def test_a_limit_has_its_own_name_only_in_its_own_direction():
    checked = gate(bad(), max_breaks=0, min={"graph_breaks": 2}, max={"speedup": 0.1})
    names = {result.limit for result in checked.results}
    assert names == {"max-breaks", "max speedup", "min graph_breaks"}


def test_each_limit_says_what_was_found_and_where():
    checked = gate(bad(), max_breaks=0, min_speedup=2, max_compile_seconds=1, max_step_ms=0.01)
    assert not checked.passed
    assert [text.partition(":")[0] for text in lines(checked)] == [
        "max-breaks", "max-compile-seconds", "max-step-ms", "min-speedup",
    ]  # fmt: skip
    text = lines(checked)
    assert text[0] == ("max-breaks: Graph breaks: 1, at most 0 allowed (gb_item.py:16 in forward)")
    assert "1.20× (95 % interval 1.09–1.50×), at least 2.00× wanted" in text[3]


def test_any_figure_can_have_a_limit():
    assert gate(bad(), max={"kernels_per_step": 2}).passed
    assert not gate(bad(), max={"kernels_per_step": 1}).passed
    assert not gate(bad(), min={"kernels_per_step": "3"}).passed


def test_a_count_that_the_report_cut_does_not_pass():
    def many(data):
        data["compile_time"]["frames"] = data["compile_time"]["frames"][:1] * MOST_COMPILES

    asked = {"compiles": 100 * MOST_COMPILES}
    (text,) = lines(gate(changed(bad(), many), max=asked))
    assert "there may be more" in text
    assert gate(bad(), max=asked).passed
    grown = {"compiles": "100%"}
    (text,) = lines(gate(changed(bad(), many), changed(bad(), many), max_growth=grown))
    assert "there may be more" in text, "as many as a list has room for, before and after"
    assert gate(bad(), bad(), max_growth=grown).passed


def test_the_whole_interval_may_be_asked_for():
    assert not gate(bad(), min_speedup=1.4).passed
    assert gate(bad(), min_speedup=1.4, whole_interval=True).passed
    assert not gate(bad(), min_speedup=1.6, whole_interval=True).passed


def noisy(data):
    data["verdict"] |= {"outcome": "neutral", "speedup": 1.05, "speedup_interval": [0.9, 1.3]}
    for row, ms in zip(data["pairs"], itertools.cycle((0.02, 0.05)), strict=False):
        row["compiled_ms"] = ms
    data["verdict"]["compiled_ms"] = 0.03


@pytest.mark.parametrize(
    "asked", [{"min_speedup": 1.0}, {"min_speedup": 1.2}, {"max_step_ms": 0.04}]
)
def test_what_is_too_noisy_is_neither_within_a_limit_nor_beyond(asked):
    run = changed(bad(), noisy)
    found = gate(run, **asked)
    assert not found.passed
    assert [each.status for each in found.results] == ["too_noisy"]
    assert summary(found) == "failed: 0 violations, 1 too noisy; 0 limits hold"
    assert gate(run, missing="skip", **asked).of("not_checked")
    assert gate(run, missing="skip", **asked).passed
    assert gate(run, min_speedup=0.85, max_step_ms=0.06).passed, "beyond the noise"
    assert gate(run, min_speedup=1.4).of("violated")
    assert gate(run, min_speedup=1.2, whole_interval=True).passed


def test_without_blocks_or_with_noisy_ones_no_slowdown_is_ruled_out():
    run = side("gpu-transformer_training")

    def few(data):
        data["pairs"] = data["pairs"][:2]

    (text,) = lines(gate(changed(run, few), run, no=["slowdowns"]))
    assert text.endswith("fewer than 3 blocks: no interval")

    def restless(data):
        for pair, times in zip(data["pairs"], itertools.cycle((1, 3)), strict=False):
            pair["compiled_ms"] *= times

    found = gate(changed(run, restless), run, no=["slowdowns"])
    (result,) = found.of("too_noisy")
    assert result.what == "Compiled step"
    assert not found.passed


def test_what_was_not_recorded_fails_or_is_said():
    failing = gate(bad(), max={"warm_compile_seconds": 5})
    assert lines(failing) == ["max warm_compile_seconds: Warm compile: not recorded"]
    skipping = gate(bad(), max={"warm_compile_seconds": 5}, max_breaks=1, missing="skip")
    assert skipping.passed
    assert "1 not checked (max warm_compile_seconds: Warm compile: not recorded)" in summary(
        skipping
    )


def uncompiled(data):
    """Records were read, but none of a compile: as of an AOTInductor log or a disabled compiler."""
    assert data["reading"]["records"]
    if data["job"]:
        data["job"]["compile"]["compiles"] = 0
    data["graph_breaks"], data["compiles"], data["recompiles"] = [], [], []
    data["findings"], data["compile_time"]["frames"] = [], []


def untimed(data):
    uncompiled(data)
    figures = dict.fromkeys(("eager_ms", "compiled_ms", "speedup", "speedup_interval"))
    data["verdict"] |= {**figures, "outcome": "not_measured", "steps_timed": 0}


@pytest.mark.parametrize(
    "figure", ["graph_breaks", "compiles", "recompiles", "recompile_limits", "compile_seconds"]
)
def test_without_any_compile_no_figure_of_compiling_is_known(figure):
    (text,) = lines(gate(changed(bad(), uncompiled), max={figure: 0}))
    assert text.endswith(": not recorded")


@pytest.mark.parametrize("figure", ["job_failures", "job_divergences", "job_stragglers"])
def test_a_job_that_compiled_nothing_has_no_zero_failures(figure):
    job = Side("job", "run", diagnosis("restarted"))
    assert not lines(gate(job, max={figure: 99}))
    (text,) = lines(gate(changed(job, uncompiled), max={figure: 99}))
    assert text.endswith(": not recorded")


def test_in_a_job_the_rank_that_has_most_counts():
    job = Side("job", "run", diagnosis("restarted"))
    (text,) = lines(gate(job, max_recompiles=1))
    assert text.startswith("max-recompiles: Recompiles: 2, at most 1 allowed (")
    assert gate(job, max_recompiles=2, max={"compiles": 3}, max_breaks=0).passed
    assert not gate(job, max={"compiles": 2}).passed
    other = Side("job", "run", diagnosis("two_jobs"))

    def on_another_rank(data):
        data["graph_breaks"] = []

    (text,) = lines(gate(changed(other, on_another_rank), max_breaks=1))
    assert text.startswith("max-breaks: Graph breaks: 2, at most 1 allowed (")
    assert "rollout.py:25" in text


def test_breaks_may_be_known_where_recompiles_are_not():
    def text_log(data):
        data["compiles"], data["recompiles"], data["compile_time"]["frames"] = [], [], []

    given = changed(bad(), text_log)
    assert gate(given, max={"graph_breaks": 1}).passed
    assert lines(gate(given, max={"recompiles": 0})) == ["max-recompiles: Recompiles: not recorded"]


def test_a_recompile_without_a_logged_reason_is_one():
    def again(data):
        (first, *_) = data["compiles"]
        data["compiles"] += [{**first, "compile_id": "0/1"}]
        data["recompiles"] = []

    assert gate(bad(), max_recompiles=0).passed
    (text,) = lines(gate(changed(bad(), again), max_recompiles=0))
    assert text.startswith("max-recompiles: Recompiles: 1, at most 0 allowed")


EMPTY_LIMITS = [
    *({"no": [word]} for word in ("errors", "warnings", "findings", "new-findings")),
    *({"max_findings": limit} for limit in (0, {"error": 0}, {"warning": 9})),
]
SEVERE = ("findings_error", "findings_warning", "findings_info")


@pytest.mark.parametrize("asked", EMPTY_LIMITS)
def test_a_run_in_which_nothing_was_compiled_or_timed_has_no_clean_bill(asked):
    blind = changed(bad(), untimed)
    (text,) = lines(gate(blind, bad(), **asked))
    assert "no compile was recorded and no step was timed" in text
    assert gate(blind, bad(), missing="skip", **asked).passed
    failed = changed(blind, lambda data: data["verdict"].update(outcome="failed"))
    assert not gate(failed, bad(), allow_failure=True, **asked).passed
    assert gate(changed(bad(), uncompiled), bad(), **asked).passed, "its steps were timed"


@pytest.mark.parametrize("log", ["graph_breaks", "recompiles"])
@pytest.mark.parametrize("asked", EMPTY_LIMITS)
def test_a_log_of_breaks_or_recompiles_alone_is_no_clean_bill(log, asked):
    """Whatever it lists: no compile that failed stands in it."""
    whole = {"graph_breaks": side("bad-gb_item"), "recompiles": side("bad-rc_python_constant")}[log]

    def only_that(data):
        kept = data[log]
        untimed(data)
        data[log] = kept

    alone = changed(whole, only_that)
    assert getattr(alone.diagnosis, log)
    (text,) = lines(gate(alone, alone, **asked))
    assert "no compile was recorded and no step was timed" in text
    assert gate(alone, no="damage").passed


@pytest.mark.parametrize("limit", ["max", "min", "max_growth"])
def test_a_figure_that_counts_findings_is_as_unknown(limit):
    blind = changed(bad(), untimed)
    results = lines(gate(blind, blind, **{limit: dict.fromkeys(SEVERE, 0)}))
    assert [text.rpartition(": ")[2] for text in results] == ["not recorded"] * 3
    assert gate(bad(), max={"findings_error": 0, "findings_warning": 1}).passed
    assert not gate(bad(), max={"findings_warning": 0}).passed


def test_a_compile_that_never_ended_took_no_known_time():
    def begun(data):
        data["compile_time"]["seconds"] = 0.0

    (text,) = lines(gate(changed(bad(), begun), max_compile_seconds=0))
    assert text.endswith(": not recorded")


def test_damage_is_known_as_soon_as_anything_was_read():
    assert gate(changed(bad(), untimed), no="damage").passed

    def unread(data):
        untimed(data)
        data["reading"]["records"] = 0

    (text,) = lines(gate(changed(bad(), unread), no="damage"))
    assert "no compile was recorded" in text


def test_damage():
    def damaged(data):
        data["reading"]["unreadable"] = 3

    assert gate(bad(), no="damage").passed
    (text,) = lines(gate(changed(bad(), damaged), no="damage"))
    assert text == "no damage: Unreadable pieces of logs and traces: 3, at most 0 allowed"


def test_findings_by_severity():
    assert gate(bad(), max_findings={"warning": 1}).passed
    assert not gate(bad(), max_findings={"warning": 0}).passed
    assert not gate(bad(), max_findings=1).passed
    assert lines(gate(bad(), no=["warnings"]))[0].startswith("no warnings: warning TV101 ")
    assert gate(bad(), no=["errors"]).passed
    assert len(lines(gate(bad(), no="findings"))) == 2


def test_new_findings_are_those_the_baseline_has_not():
    good = side("good-gb_item")
    new = lines(gate(bad(), good, no=["new-findings"]))
    assert new == [
        "no new-findings: warning TV101 Graph break at gb_item.py:16: `.item()` "
        "(gb_item.py:16 in forward)"
    ]
    assert gate(good, bad(), no=["new-findings"]).passed
    assert gate(moved(bad(), "import os\n\n", "b.py"), bad(), no=["new-findings"]).passed


def test_a_finding_that_the_baseline_could_not_have_is_not_checked():
    def unchecked(data):
        row = {"rule": "gb-item", "code": "TV101", "needs": "a log", "command": None}
        data["not_checked"].append(row)

    blind = changed(side("good-gb_item"), unchecked)
    (text,) = lines(gate(bad(), blind, no=["new-findings"]))
    assert "in the baseline: not checked, it needs a log" in text
    assert gate(bad(), blind, no=["new-findings"], missing="skip").passed


def test_growth_against_the_baseline():
    good = side("good-gb_item")
    assert not gate(bad(), good, max_growth={"kernels_per_step": "50%"}).passed
    assert gate(bad(), good, max_growth={"kernels_per_step": "100%"}).passed
    (text,) = lines(gate(bad(), good, max_growth={"warm_compile_seconds": 0.1}))
    assert text == "max-growth warm_compile_seconds: Warm compile: not recorded"


def test_slowdowns():
    run = side("gpu-transformer_training")

    def slower(data):
        for pair in data["pairs"]:
            pair["compiled_ms"] *= 2
        data["verdict"]["compiled_ms"] *= 2

    assert gate(run, run, no=["slowdowns"]).passed
    (text,) = lines(gate(changed(run, slower), run, no=["slowdowns"]))
    assert text.startswith("no slowdowns: Compiled step: 18.2 ms, at most 9.12 ms allowed")
    (text,) = lines(gate(run, None, no=["slowdowns"]))
    assert "no baseline was given" in text


def test_a_script_that_failed_is_a_violation_of_its_own():
    failed = side("gpu-cudagraph_overwritten")
    (text,) = [said for said in lines(gate(failed, max_breaks=9)) if said.startswith("script:")]
    assert "The script raised RuntimeError" in text
    assert gate(failed, max_breaks=9, allow_failure=True).passed


def test_a_fingerprint_outlives_moved_lines():
    one, other = gate(bad(), no="warnings"), gate(moved(bad(), "import os\n"), no="warnings")
    assert one.results[0].fingerprint == other.results[0].fingerprint
    assert len({result.fingerprint for result in gate(bad(), no="findings").results}) == 2


@pytest.mark.parametrize(
    ("asked", "fact"),
    [
        ({"max-breaks": "two"}, "max-breaks needs"), ({"max-breaks": -1}, "needs a number"),
        ({"max-breaks": True}, "needs a number"), ({"min-speedup": "nan"}, "needs a number"),
        ({"max-braeks": 1}, "no limit called max-braeks"), ({"max": {"breaks": 1}}, "no figure"),
        ({"max": 3}, "must be a table"), ({"no": ["new-finding"]}, "no does not take new-finding"),
        ({"no": 3}, "must be a list"), ({"missing": "ignore"}, "missing must be fail or skip"),
        ({"max-findings": {"warn": 1}}, "max-findings has no severity called warn"),
        ({"whole-interval": "yes"}, "must be true or false"),
        ({"max-breaks": [1]}, "needs a number"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_one_sentence(asked, fact):
    with pytest.raises(UsageError) as caught:
        limits_of(asked, "pyproject.toml")
    assert fact in caught.value.fact
    assert "pyproject.toml" in caught.value.fact


def test_zero_is_a_limit_and_nothing_is_none():
    assert limits_of({"max-breaks": 0}, HERE).highest == {"graph_breaks": 0.0}
    assert limits_of({"max-breaks": None, "no": (), "max": {}}, HERE).empty
    assert number("10%", "x", HERE) == 0.1
    assert number("1e3", "x", HERE) == 1000.0


def test_later_limits_win_figure_by_figure():
    first = limits_of({"max-breaks": 0, "max-recompiles": 2, "no": ["errors"]}, "file")
    later = limits_of({"max-breaks": 3}, HERE)
    both = merged(first, later, set())
    assert both.highest == {"graph_breaks": 3.0, "recompiles": 2.0}
    assert both.no == ("errors",)
    assert merged(first, Limits(no=("findings",)), {"no"}).no == ("findings",)

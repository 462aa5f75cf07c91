"""The verdict in plain sentences, made from the verdict's own data."""

import polars as pl
import pytest
from factories import finding
from msgspec.structs import replace

from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import AccountRow, Reason, Verdict
from traceview.diagnosis.sentence import worded
from traceview.diagnosis.verdict import explained
from traceview.tables import Tables

NOWHERE = Focus("cold", None, None)
FIGURES = {
    "speedup": 1.0,
    "speedup_interval": (0.98, 1.02),
    "eager_ms": 2.74,
    "compiled_ms": 2.78,
    "clock": "device",
    "blocks": 8,
    "basis": "paired_blocks",
}


def verdict_of(outcome, reason=None, accounting=None, findings=(), why=(), left=None, **figures):
    """A verdict with its words; ``why`` are (effect, ms) of the difference between the figures."""
    verdict = Verdict(outcome, **(FIGURES | figures))
    verdict = explained(verdict, reason, Tables({}), NOWHERE, findings, {}) if not why else verdict
    if why:
        change = verdict.compiled_ms - verdict.eager_ms
        parts = tuple(Reason(name, ms, ms / change, "measured", code) for name, ms, code in why)
        left = change - sum(part.ms for part in parts)
        verdict = replace(verdict, difference_ms=change, why=parts, unexplained_ms=left)
    return worded(verdict, reason, findings, accounting or {})


def said(*args, **more):
    return verdict_of(*args, **more).sentence


def accounts(**stances):
    return {
        stance: tuple(
            AccountRow(name, ms, "idle" if "idle" in name else "busy") for name, ms in rows
        )
        for stance, rows in stances.items()
    }


def test_a_sentence_is_its_parts():
    found = verdict_of("neutral", findings=[finding(title="graph breaks at x.py:3")])
    assert found.headline == (
        "torch.compile made no measurable difference: a step takes 2.78 ms instead of 2.74 ms"
    )
    assert found.support == "1.00×, 95 % interval 0.98× to 1.02×, device time, 8 block pairs"
    assert found.remarks == ("Top finding: graph breaks at x.py:3.",)
    assert found.sentence == f"{found.headline} ({found.support}). {found.remarks[0]}"


def test_neutral_names_what_fills_both_steps():
    both = accounts(eager=[("gemm", 9.2), ("idle", 0.8)], compiled=[("gemm", 9.4), ("copy", 0.6)])
    assert said("neutral", accounting=both).endswith(
        "In eager and compiled alike, 92 % of the step is matrix products."
    )


def test_gains_and_losses_that_cancel_out_are_named():
    why = [("fusion", -1.0, None), ("overheads_added", 1.04, None)]
    assert said("neutral", why=why).endswith(
        "Gains and losses cancel out: the largest gain is fusion (1.00 ms), the largest loss "
        "overhead of compiled calls (1.04 ms)."
    )


def test_hurt_says_where_the_extra_time_goes_and_what_explains_it():
    why = [("library_choice", 3.43, "TV405"), ("fusion", -0.1, None), ("copies_added", 0.2, None)]
    text = said("hurt", why=why, eager_ms=0.5, compiled_ms=4.0, speedup=0.13)
    assert text.endswith(
        "The extra 3.50 ms go to slower library kernels 3.43 ms (98 %, TV405) and added copies "
        "0.200 ms (5.7 %)."
    )


@pytest.mark.parametrize(("due", "named"), [(None, None), (80.0, "TV513"), (30.0, None)])
def test_a_part_that_gains_outweigh_is_explained_by_what_is_due_to_its_cause(due, named):
    timed = Verdict("hurt", **FIGURES, difference_ms=9.5)
    parts = [("overheads_added", "idle_cudagraph_recording", 80.6), ("launches_saved", "", -71.1)]
    rows = [{"effect": effect, "what": what, "ms": ms} for effect, what, ms in parts]
    tables = Tables({"waterfall_rows": pl.DataFrame(rows)})
    cause = replace(finding(ms=9.5), code="TV513", rule="cg-dynamic-rerecord", due_ms=due)
    explains = {cause.rule: frozenset({"idle_cudagraph_recording"})}
    why = explained(timed, None, tables, Focus(None, None, None), [cause], explains).why
    assert [(part.ms, part.finding) for part in why] == [(80.6, named), (-71.1, None)]


@pytest.mark.parametrize(
    ("recording_ms", "part"), [(395.0, "overheads_added"), (1.0, "compiling_again")]
)
def test_recording_in_each_profiled_step_is_what_recurs(recording_ms, part):
    """A step without compiles has no room for a recording that is longer than it."""
    timed = Verdict("hurt", difference_ms=175.0, eager_ms=5.5, compiled_ms=180.5)
    speedup = {"outcome": "hurt", "speedup_low": 1.2, "eager_ms": 6.4, "compiled_ms": 5.1}
    speedup |= {"eager_mean_ms": 5.5, "compiled_mean_ms": 180.5}
    row = {"effect": "overheads_added", "what": "idle_cudagraph_recording", "ms": recording_ms}
    tables = Tables(
        {
            "speedups": pl.DataFrame([speedup]),
            "waterfall_rows": pl.DataFrame([row]),
        }
    )
    found = explained(timed, None, tables, Focus(None, None, None), [], {})
    largest = found.why[0]
    assert (largest.effect, largest.ms) == (part, pytest.approx(176.3))
    others = sum(each.ms for each in found.why[1:])
    assert others == pytest.approx(0.0 if part == "overheads_added" else recording_ms)


def test_helped_says_what_saves_what_is_lost_again_and_what_is_not_explained():
    why = [("fusion", -0.6, None), ("launches_saved", -0.3, None), ("copies_added", 0.1, None)]
    text = said("helped", why=why, eager_ms=2.0, compiled_ms=1.1, speedup=1.8)
    assert text.endswith(
        "The 0.900 ms saved come from fusion 0.600 ms (67 %) and less launching 0.300 ms (33 %); "
        "lost again: added copies 0.100 ms (11 %); 0.100 ms unexplained."
    )


def test_shares_of_more_than_the_whole_are_left_out():
    why = [("fusion", -3.0, None), ("overheads_added", 2.0, None)]
    text = said("helped", why=why, eager_ms=5.0, compiled_ms=4.0)
    assert "fusion 3.00 ms; lost again: overhead of compiled calls 2.00 ms" in text


def test_a_difference_that_is_mostly_unexplained_is_said_to_be():
    text = said("hurt", why=[("overheads_added", 0.111, None)], eager_ms=3.0, compiled_ms=4.75)
    assert text.endswith(
        "Less than half of the 1.75 ms is explained: the profile leaves 1.64 ms unexplained. "
        "Compare the step timelines in the report."
    )


def test_without_a_profile_no_reason_is_given():
    text = said("hurt", findings=[finding(title="fp32 matrix products without TF32")])
    assert "Where the time went was not recorded" in text
    assert text.endswith("Top finding: fp32 matrix products without TF32.")


def test_a_wrong_result_weighs_more_than_any_cost():
    slow = finding(title="graph breaks at x.py:3")
    wrong = replace(finding(severity="error", title="f() gives a wrong result"), code="TV703")
    text = said("helped", findings=[slow, wrong])
    assert text.endswith("More important: f() gives a wrong result.")


def test_failed_says_first_what_happened_then_the_figures():
    text = said("failed", "the script raised ValueError at a.py:3: no")
    assert text.startswith(
        "The script raised ValueError at a.py:3: no. Until then, a step took 2.78 ms instead of"
    )
    bare = said("failed", "the script ended with exit code 2", eager_ms=None)
    assert bare == "The script ended with exit code 2."


def test_a_failure_names_the_error_that_explains_it():
    causes = [finding(title="slow step", ms=2.0), finding(title="no such option", severity="error")]
    causes[0] = replace(causes[0], code="TV501")
    text = said("failed", "the script raised RuntimeError", findings=causes, eager_ms=None)
    assert text == "The script raised RuntimeError. Cause: no such option."


def test_only_what_kept_code_from_being_captured_can_be_why_nothing_was_compiled():
    other = replace(finding(title="fp32 matrix products without TF32"), code="TV401")
    never = replace(finding(rule="cap-nothing-compiled", title="never called"), code="TV110")
    failed = replace(finding(title="f() failed to compile"), code="TV112")
    none = {"speedup": None, "compiled_ms": None}
    reason = "Dynamo compiled no graph"
    found = verdict_of("not_compiled", reason, findings=[other, never, failed], **none)
    assert found.headline == "Nothing was compiled: Dynamo compiled no graph"
    assert [why.finding for why in found.why] == ["TV110", "TV112"]
    assert found.remarks == (
        "Cause: f() failed to compile.",
        "Also found: fp32 matrix products without TF32.",
    )
    text = said("not_compiled", "the script never calls torch.compile", **none)
    assert text == "Nothing was compiled: the script never calls torch.compile."


def test_what_compiled_no_graph_and_slows_the_steps_hurts():
    cause = replace(finding(title="an if on a tensor"), code="TV102")
    text = said(
        "hurt", "Dynamo compiled no graph", findings=[cause], compiled_ms=36.1, eager_ms=0.8
    )
    assert text.startswith("torch.compile hurt: a step takes 36.1 ms instead of")
    assert "Dynamo compiled no graph. Cause: an if on a tensor." in text


@pytest.mark.parametrize("clock", ["host", "device"])
def test_not_measured_gives_the_side_that_is_known(clock):
    figures = {"speedup": None, "eager_ms": None, "steps_timed": 9, "clock": clock}
    text = said("not_measured", "eager steps were not measured", **figures)
    assert text == (
        "No verdict: eager steps were not measured. "
        f"A step takes 2.78 ms compiled ({clock} time, 9 steps)."
    )


def test_two_runs_are_named():
    text = said("helped", basis="two_runs", steps_timed=2000, clock="host")
    assert "host time, two runs, 2,000 steps" in text


def test_the_scripts_own_timer_and_information_are_no_advice():
    timer = replace(finding(title="its timer holds the compile", seconds=40.0), code="TV901")
    info = replace(finding(title="for information", severity="info"), code="TV410")
    causes = [timer, info, finding(title="slow start", seconds=9.0)]
    found = verdict_of("hurt", findings=causes)
    assert found.advice == (causes[2].code,)
    assert found.sentence.endswith("Top finding: slow start.")


@pytest.mark.parametrize(
    ("interval", "opening"),
    [
        ((0.98, 1.02), "torch.compile made no measurable difference:"),
        ((1.01, 1.02), "torch.compile made next to no difference:"),
        ((1.01, 1.4), "Too noisy to tell: 1.01× to 1.40×"),
        ((0.95, 4.3), "Too noisy to tell: 0.95× to 4.30×"),
    ],
)
def test_neutral_says_no_more_than_the_interval_does(interval, opening):
    text = said("neutral", speedup_interval=interval)
    assert text.startswith(opening)
    assert ("quieter machine" in text) == ("noisy" in opening)


def test_a_sure_outcome_of_unsure_size_is_named_as_noise():
    assert "uncertain" in said("hurt", speedup_interval=(0.06, 0.88))
    assert "uncertain" not in said("hurt", speedup_interval=(0.76, 0.88))


@pytest.mark.parametrize(
    ("speedup", "compiled_ms", "says"),
    [
        (0.97, 4.83, True),
        (1.03, 5.1, True),
        (0.97, 5.1, False),
        (1.03, 4.83, False),
        (0.999, 4.9, False),  # the same to two decimals
    ],
)
def test_medians_that_contradict_the_ratio_are_explained(speedup, compiled_ms, says):
    text = said("neutral", eager_ms=4.98, compiled_ms=compiled_ms, speedup=speedup)
    assert ("drifted during the run" in text) == says


def test_both_times_have_one_unit():
    text = said("hurt", compiled_ms=0.0175, eager_ms=0.00474)
    assert "a step takes 17.5 µs instead of 4.74 µs" in text

"""What a trials process measured, and the verdict on it."""

import pytest
from trial_events import agreeing, block, blocks, check, measured, remedy, trial, write

from traceview.trials.judging import beyond_noise, judged
from traceview.trials.reading import read_trials

NAME = "dynamic=None"


def verdict_on(folder, events, baseline="compiled", asked=None):
    return judged(asked or remedy(NAME), read_trials(write(folder, events), baseline)[NAME])


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict"),
    [
        (1.4, 0.004, "accepted"),
        (1.4, 0.3, "no_gain"),  # too noisy to be sure
        (1.0, 0.004, "no_gain"),
        (1.006, 0.0001, "no_gain"),  # beyond the interval, but by less than 1 %
        (0.8, 0.004, "slower"),
    ],
)
def test_the_gain_decides(tmp_path, ratio, noise, verdict):
    made = verdict_on(tmp_path, measured(NAME, ratio, noise=noise))
    assert made.verdict == verdict
    assert made.interval[0] <= made.ratio <= made.interval[1]


def test_the_figures(tmp_path):
    asked = remedy(NAME, rules=("rc-dynamic-false", "rc-limit-hit"), predicted_ms=3.0)
    made = verdict_on(tmp_path, measured(NAME, 1.25), asked=asked)
    assert (made.rule, made.rules) == ("rc-dynamic-false", asked.rules)
    assert (made.baseline_ms, made.trial_ms) == (pytest.approx(10.0), pytest.approx(8.0))
    assert (made.predicted_ms, made.measured_ms) == (3.0, pytest.approx(2.0))
    assert (made.pairs, made.clock, made.compile_seconds) == (8, "host", 2.5)
    assert made.outputs_agree is True
    assert made.why is None


def test_a_block_with_a_compile_inside_does_not_count(tmp_path):
    bad = [
        block(NAME, 9, "compiled", 10.0),
        block(NAME, 9, "trial", 900.0, compiles_inside=1),
    ]
    made = verdict_on(tmp_path, [*bad, *measured(NAME, 1.25)])
    assert (made.pairs, made.verdict) == (8, "accepted")


def test_other_trials_and_ordinary_blocks_are_not_mixed_in(tmp_path):
    others = [*blocks("mode=default", 0.5), *measured("fullgraph=True", 0.5)]
    ordinary = [{**event, "trial": None} for event in blocks(NAME, 3.0)]
    made = verdict_on(tmp_path, [*ordinary, *others, *measured(NAME, 1.25)])
    assert made.ratio == pytest.approx(1.25, rel=0.01)


def test_against_eager(tmp_path):
    events = measured(NAME, 2.0, base="eager")
    assert verdict_on(tmp_path, events, "eager").ratio == pytest.approx(2.0, rel=0.01)
    assert verdict_on(tmp_path, events, "compiled") is None


class TestOutputs:
    def test_a_change_outweighs_the_gain(self, tmp_path):
        events = [
            *blocks(NAME, 1.4),
            *agreeing(NAME),
            check(NAME, "trial", False, "gradient of weight"),
            check(NAME, "compiled", True, "gradient of weight"),
            trial(NAME),
        ]
        made = verdict_on(tmp_path, events)
        assert (made.verdict, made.outputs_agree) == ("changes_results", False)
        assert "gradient of weight differs from eager: by up to 0.25" in made.why

    def test_what_compiled_changes_as_well_is_not_the_trials(self, tmp_path):
        events = [
            *blocks(NAME, 1.4),
            *agreeing(NAME),
            check(NAME, "trial", False, "x"),
            check(NAME, "compiled", False, "x"),
            trial(NAME),
        ]
        assert verdict_on(tmp_path, events).verdict == "accepted"

    def test_not_compared_says_why(self, tmp_path):
        why = {"event": "output_trial", "trial": NAME, "region_id": 0, "compared": False,
               "why": "it draws random numbers"}  # fmt: skip
        made = verdict_on(tmp_path, [*blocks(NAME, 1.4), why, trial(NAME)])
        assert (made.verdict, made.outputs_agree) == ("accepted", None)
        assert made.why == "outputs were not compared: it draws random numbers"


@pytest.mark.parametrize("state", ["failed", "not_applicable"])
def test_without_figures_the_reason_stays(tmp_path, state):
    made = verdict_on(tmp_path, [trial(NAME, state, why="RuntimeError: no", compile_s=None)])
    assert (made.verdict, made.why, made.ratio, made.interval) == (
        state, "RuntimeError: no", None, None,
    )  # fmt: skip


def test_too_few_pairs_are_no_verdict(tmp_path):
    assert verdict_on(tmp_path, measured(NAME, 1.4, pairs=2)) is None


def test_a_trial_that_did_not_end_is_not_there(tmp_path):
    raw = write(tmp_path, [*blocks(NAME, 1.4), *measured("no_grad", 1.2)])
    assert set(read_trials(raw, "compiled")) == {"no_grad"}


def test_a_process_of_its_own_that_tried_nothing(tmp_path):
    raw = write(tmp_path, measured(NAME, 1.4), pid=9)
    write(tmp_path, blocks(NAME, 0.1), pid=3)
    assert read_trials(raw, "compiled")[NAME].ratio.ratio == pytest.approx(1.4, rel=0.01)


def test_damaged_events_are_left_out(tmp_path):
    raw = write(tmp_path, [trial("a", "odd"), trial(5), *measured(NAME, 1.4)])
    path = raw / "events-7.jsonl"
    path.write_text(path.read_text() + '{"event": "trial", "name": "b", "sta')
    assert set(read_trials(raw, "compiled")) == {NAME}


def test_an_empty_folder(tmp_path):
    assert read_trials(tmp_path, "compiled") == {}


def test_more_memory_is_a_price(tmp_path):
    more = trial(NAME, peak_bytes=3 << 30, baseline_peak_bytes=2 << 30)
    made = verdict_on(tmp_path, [*blocks(NAME, 1.4), more])
    assert made.price == ("memory: a peak of 3.00 GiB instead of 2.00 GiB",)


@pytest.mark.parametrize(("other", "beyond"), [(1.2, True), (1.395, False), (1.5, False)])
def test_beyond_noise(tmp_path, other, beyond):
    one = verdict_on(tmp_path / "one", measured(NAME, 1.4, noise=0.01))
    two = verdict_on(tmp_path / "two", measured(NAME, other, noise=0.01))
    assert beyond_noise(one, two) is beyond

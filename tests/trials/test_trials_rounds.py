"""Processes one after the other: who is asked again, when it ends, what is recommended."""

import pytest
from trial_events import agreeing, blocks, check, measured, remedy, trial, write

from traceview.trials import Plan, Remedy, results
from traceview.trials.rounds import LEAST_S, Process


class Script:
    """A target whose processes leave these events, in turn; a clock that it moves on."""

    def __init__(self, folder, *processes, seconds=10.0, interrupted=False):
        self._folder, self._processes = folder, list(processes)
        self._seconds, self._interrupted = seconds, interrupted
        self.asked, self.given, self.now = [], [], 0.0

    def __call__(self, remedies, seconds):
        self.asked.append([one.name for one in remedies])
        self.given.append(seconds)
        self.now += self._seconds
        raw = write(self._folder / f"trials-{len(self.asked)}", self._processes.pop(0))
        return Process(raw, self._interrupted)

    def clock(self):
        return self.now


def tried(script, *remedies, budget=600.0, **more):
    return results(Plan(remedies, "compiled", budget, **more), script, script.clock)


A, B, C = (remedy(name) for name in ("dynamic=None", "no_grad", "channels_last"))


def whys(made):
    return {row.name: row.why for row in made.not_tried}


def test_those_without_a_turn_are_asked_for_again(tmp_path):
    first = [*measured(A.name, 1.0), *blocks(B.name, 1.1), trial(B.name, "unfinished")]
    script = Script(tmp_path, first, [*measured(B.name, 1.0), *measured(C.name, 0.9)])
    made = tried(script, A, B, C)
    assert script.asked == [
        ["dynamic=None", "no_grad", "channels_last"],
        ["no_grad", "channels_last"],
    ]
    assert [one.verdict for one in made.trials] == ["no_gain", "no_gain", "slower"]
    assert (made.recommended, made.not_tried) == (None, ())


def test_a_process_that_ends_nothing_is_the_last(tmp_path):
    unfinished = trial(B.name, "unfinished", why="only 2 steps were left")
    script = Script(tmp_path, measured(A.name, 1.0), [unfinished])
    made = tried(script, A, B, C)
    assert whys(made) == {
        "no_grad": "only 2 steps were left",
        "channels_last": "the script ended before enough blocks of it were measured",
    }


def test_the_budget_is_looked_at_before_each_process(tmp_path):
    script = Script(tmp_path, measured(A.name, 1.0), seconds=60.0)
    made = tried(script, A, B, budget=60.0 + LEAST_S / 2)
    assert script.given == [62.5]
    assert whys(made) == {"no_grad": "the budget of 62.5 s was spent"}


def test_what_was_measured_before_an_interrupt_stays(tmp_path):
    script = Script(tmp_path, measured(A.name, 1.4), interrupted=True)
    made = tried(script, A, B)
    assert made.recommended.trials == ("dynamic=None",)
    assert whys(made) == {"no_grad": "interrupted"}


def test_too_few_pairs_are_not_asked_for_again(tmp_path):
    script = Script(tmp_path, measured(A.name, 1.4, pairs=2))
    assert whys(tried(script, A)) == {
        A.name: "only 2 pairs of blocks can be used: too few for a verdict"
    }


def test_what_has_no_remedy_is_listed(tmp_path):
    spare = Remedy("gb-x", rules=("gb-x",)).untried("no remedy")
    assert tried(Script(tmp_path), spare=(spare,)).not_tried == (spare,)


class TestTogether:
    JOINT = f"{A.name}+{B.name}"

    def test_is_recommended_where_it_is_faster_than_the_best_alone(self, tmp_path):
        both = [*measured(B.name, 1.2), *measured(A.name, 1.4)]
        script = Script(tmp_path, both, measured(self.JOINT, 1.7))
        made = tried(script, A, B)
        assert script.asked[1] == [self.JOINT]
        best = made.recommended
        assert best.trials == ("dynamic=None", "no_grad")
        assert best.settings == ("dynamic=None", "no_grad")
        assert best.ratio == pytest.approx(1.7, rel=0.01)
        assert len(best.code) == 2
        assert "faster than the best alone (1.40×)" in best.why

    @pytest.mark.parametrize(
        ("whole", "why"),
        [
            (measured(JOINT, 1.401), "no faster beyond noise"),
            ([trial(JOINT, "failed", why="RuntimeError: no")], "failed (RuntimeError: no)"),
            ([*blocks(JOINT, 2.0), *agreeing(JOINT), check(JOINT, "trial", False, "y"),
              trial(JOINT)], "changes results"),
        ],
    )  # fmt: skip
    def test_else_the_best_alone_is(self, tmp_path, whole, why):
        both = [*measured(A.name, 1.4), *measured(B.name, 1.2)]
        best = tried(Script(tmp_path, both, whole), A, B).recommended
        assert best.trials == ("dynamic=None",)
        assert best.ratio == pytest.approx(1.4, rel=0.01)
        assert why in best.why

    def test_of_two_that_set_the_same_the_faster_stays(self, tmp_path):
        modes = [remedy("mode=reduce-overhead"), remedy("mode=max-autotune"), A]
        first = [
            e
            for one, gain in zip(modes, (1.3, 1.5, 1.2), strict=True)
            for e in measured(one.name, gain)
        ]
        joint = "mode=max-autotune+dynamic=None"
        script = Script(tmp_path, first, measured(joint, 1.9))
        assert tried(script, *modes).recommended.settings == ("mode=max-autotune", "dynamic=None")

    def test_one_patch_at_most(self, tmp_path):
        patches = [Remedy(f"patch a.py:{n}", patch=f"--- a.py {n}") for n in (1, 2)]
        both = [*measured(patches[0].name, 1.2), *measured(patches[1].name, 1.4)]
        script = Script(tmp_path, both)
        assert tried(script, *patches).recommended.patch == "--- a.py 2"
        assert len(script.asked) == 1

    def test_not_in_a_sweep(self, tmp_path):
        both = [*measured(A.name, 1.4), *measured(B.name, 1.2)]
        script = Script(tmp_path, both)
        assert tried(script, A, B, together=False).recommended.trials == ("dynamic=None",)

    def test_not_after_the_budget(self, tmp_path):
        both = [*measured(A.name, 1.4), *measured(B.name, 1.2)]
        script = Script(tmp_path, both, seconds=60.0)
        made = tried(script, A, B, budget=60.0)
        assert made.recommended.trials == ("dynamic=None",)
        assert whys(made) == {self.JOINT: "the budget of 60.0 s was spent"}


def test_one_without_a_price_wins_where_both_are_as_fast_but_for_noise(tmp_path):
    priced = remedy("guards=skip")
    both = [*measured(priced.name, 1.41, noise=0.02), *measured(A.name, 1.40, noise=0.02)]
    best = tried(Script(tmp_path, both), priced, A, together=False).recommended
    assert best.trials == ("dynamic=None",)
    assert "as fast as guards=skip (1.41×) but for noise" in best.why

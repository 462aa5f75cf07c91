"""Processes one after the other: who is asked again, when it ends, what is recommended."""

import json

import pytest
from trial_events import agreeing, alone, blocks, check, measured, remedy, trial, write

from traceview.trials import Plan, Remedy, results
from traceview.trials.rounds import LEAST_S, Process


class Script:
    """A target whose processes leave these events, in turn; a clock that it moves on."""

    def __init__(self, folder, *processes, seconds=10.0, ending="exit", failure=None):
        self._folder, self._processes = folder, list(processes)
        self._seconds, self._ending, self._failure = seconds, ending, failure
        self.asked, self.alone, self.given, self.now = [], [], [], 0.0
        self.ways = []

    def __call__(self, remedies, seconds):
        self.asked.append([one.name for one in remedies])
        self.given.append(seconds)
        self.now += self._seconds
        raw = write(self._folder / f"trials-{len(self.asked)}", self._processes.pop(0))
        return Process(raw, self._ending, self._failure)

    def apart(self, remedy, seconds, how):
        self.alone.append(remedy and remedy.name)
        self.ways.append(how)
        self.given.append(seconds)
        self.now += self._seconds
        raw = write(self._folder / f"apart-{len(self.alone)}", self._processes.pop(0))
        return Process(raw, self._ending)

    def clock(self):
        return self.now


def tried(script, *remedies, budget=600.0, **more):
    return results(Plan(remedies, "compiled", budget, **more), script, script.apart, script.clock)


A, B, C = (remedy(name) for name in ("dynamic=None", "no_grad", "channels_last"))


def whys(made):
    return {row.name: row.why for row in made.not_tried}


def test_those_without_a_turn_are_asked_for_again(tmp_path):
    few = blocks(B.name, 1.1, pairs=4)
    first = [*measured(A.name, 1.0), *few, trial(B.name, "unfinished")]
    script = Script(tmp_path, first, [*measured(B.name, 1.0), *measured(C.name, 0.9)])
    made = tried(script, A, B, C)
    assert script.asked == [
        ["dynamic=None", "no_grad", "channels_last"],
        ["no_grad", "channels_last"],
    ]
    assert [one.verdict for one in made.trials] == ["no_gain", "no_gain", "slower"]
    assert (made.recommended, made.not_tried) == (None, ())


class TestAScriptThatEndsTooEarly:
    def few(self, name, ratio=1.5, **more):
        checks = [check(name, "trial", **more)] if more else []
        return [*blocks(name, ratio, pairs=2), *checks, trial(name, "unfinished")]

    def test_pairs_of_several_processes_add_up(self, tmp_path):
        script = Script(tmp_path, *[self.few(A.name)] * 5)
        made = tried(script, A)
        assert len(script.asked) == 3
        (one,) = made.trials
        assert (one.verdict, one.pairs) == ("accepted", 6)
        assert one.ratio == pytest.approx(1.5, rel=0.01)
        assert "measured in 3 processes: the script ends before one has enough" in one.notes

    def test_one_process_in_which_outputs_differ_is_enough(self, tmp_path):
        same, differing = (self.few(A.name, same=same) for same in (True, False))
        script = Script(tmp_path, same, differing, same)
        (one,) = tried(script, A).trials
        assert one.verdict == "changes_results"

    def test_a_crash_is_no_end_of_the_script(self, tmp_path):
        begun = {"event": "trial_begin", "t": 1.0, "name": A.name}
        script = Script(tmp_path, [*blocks(A.name, 1.5), begun], ending="signal", failure="killed")
        (one,) = tried(script, A).trials
        assert one.verdict == "failed"

    def test_a_patch_gets_processes_of_its_own(self, tmp_path):
        script = Script(tmp_path, [], *([alone(10.0), alone(5.0)] * 3))
        (one,) = tried(script, TestApart.PATCH).trials
        assert (one.verdict, one.apart) == ("accepted", True)


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
    script = Script(tmp_path, measured(A.name, 1.4), ending="interrupted")
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

    def test_a_patch_among_them_keeps_its_price_and_its_failure(self, tmp_path):
        patch = Remedy("patch a.py:1", patch="--- a.py", costs=("both sides are computed",))
        joint = f"{A.name}+{patch.name}"
        both = [*measured(A.name, 1.4), *measured(patch.name, 1.2)]
        script = Script(tmp_path / "one", both, measured(joint, 1.7))
        assert tried(script, A, patch).recommended.price == ("both sides are computed",)
        script = Script(tmp_path / "two", both, [trial(joint, "failed", why="KeyError: 'a'")])
        best = tried(script, A, patch).recommended
        assert (best.trials, script.alone) == ((A.name,), [])
        assert "failed (KeyError: 'a')" in best.why

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


class TestApart:
    """A change of code that runs once can't be switched: processes of both kinds take turns."""

    PATCH = Remedy("patch train.py:7", patch="--- train.py", rules=("gb-item",), predicted_ms=2.0)

    def refused(self):
        return [trial(self.PATCH.name, "not_applicable", why="it has run already")]

    def test_three_of_each_in_turns(self, tmp_path):
        times = (10.0, 5.0, 10.4, 5.1, 9.8, 5.2)
        script = Script(tmp_path, self.refused(), *(alone(ms) for ms in times))
        made = tried(script, self.PATCH)
        assert script.alone == [None, self.PATCH.name] * 3
        (one,) = made.trials
        assert (one.verdict, one.apart, one.pairs) == ("accepted", True, 3)
        assert (one.baseline_ms, one.trial_ms) == (10.0, 5.1)
        assert one.ratio == pytest.approx(10 / 5.1)
        assert one.interval == pytest.approx((9.8 / 5.2, 10.4 / 5.0))
        assert one.measured_ms == pytest.approx(4.9)
        assert (one.outputs_agree, one.clock, one.compile_seconds) == (None, "host", 2.0)
        assert made.recommended.patch == self.PATCH.patch

    def test_a_little_is_measured_twice_more(self, tmp_path):
        times = (10.0, 9.7, 10.1, 9.8, 10.0, 9.6, 10.0, 9.7, 10.2, 10.1)
        script = Script(tmp_path, self.refused(), *(alone(ms) for ms in times))
        (one,) = tried(script, self.PATCH).trials
        assert script.alone == [None, self.PATCH.name] * 5
        assert (one.verdict, one.pairs) == ("no_gain", 5)

    def test_one_slow_process_does_not_hide_a_gain(self, tmp_path):
        times = (10.0, 8.0, 10.1, 8.1, 10.0, 10.05, 10.2, 8.0, 10.1, 8.2)
        script = Script(tmp_path, self.refused(), *(alone(ms) for ms in times))
        (one,) = tried(script, self.PATCH).trials
        assert (one.verdict, one.pairs) == ("accepted", 5)
        assert one.interval[0] == pytest.approx(10.1 / 10.05)

    def test_runs_that_overlap_gain_nothing(self, tmp_path):
        times = (10.0, 9.9, 10.4, 10.1, 9.8, 9.7)
        script = Script(tmp_path, self.refused(), *(alone(ms) for ms in times))
        assert [one.verdict for one in tried(script, self.PATCH).trials] == ["no_gain"]

    def test_the_script_as_it_is_runs_once_for_all(self, tmp_path):
        variable = Remedy("env.A=1", ("env.A=1",))
        refused = [*self.refused(), trial(variable.name, "not_applicable", why="before")]
        times = (10.0, 5.0, 10.0, 5.0, 10.0, 5.0, 8.0, 8.0, 8.0)
        script = Script(tmp_path, refused, *(alone(ms) for ms in times))
        made = tried(script, self.PATCH, variable)
        assert script.alone == [None, self.PATCH.name] * 3 + [variable.name] * 3
        assert [one.ratio for one in made.trials] == [2.0, 1.25]

    def loops(self, folder, *found):
        """What the processes apart leave of the script's loops, in turn."""
        for number, loops in enumerate(found, 1):
            raw = folder / f"apart-{number}"
            raw.mkdir()
            (raw / "ticks.json").write_text(json.dumps(loops))

    def test_a_loop_of_the_script_counts_before_what_is_called_in_it(self, tmp_path):
        """A patch may let something else be called, eight times in a step."""
        usual = {
            "for step in steps 1": {"ms": 10.0, "count": 50},
            "for x in y 1": {"ms": 99, "count": 3},
        }
        changed = {
            "for step in steps 1": {"ms": 8.0, "count": 60},
            "for z in y 1": {"ms": 1, "count": 900},
        }
        self.loops(tmp_path, *[usual, changed] * 3)
        events = [alone(10.0), alone(1.0, called="piece")] * 3
        (one,) = tried(Script(tmp_path, self.refused(), *events), self.PATCH).trials
        assert (one.verdict, one.ratio, one.trial_ms) == ("accepted", 1.25, 8.0)

    def test_the_loop_that_takes_the_time_counts_not_the_one_that_turns_most(self, tmp_path):
        fill = {"for filled in range(900) 1": {"ms": 0.1, "count": 900}}
        usual = {"for step in steps 1": {"ms": 10.0, "count": 50}, **fill}
        changed = {"for step in steps 1": {"ms": 5.0, "count": 60}, **fill}
        self.loops(tmp_path, *[usual, changed] * 3)
        (one,) = tried(Script(tmp_path, self.refused(), *[alone(10.0)] * 6), self.PATCH).trials
        assert (one.verdict, one.ratio) == ("accepted", 2.0)

    def test_calls_of_something_else_are_no_steps_to_compare(self, tmp_path):
        events = [alone(10.0), alone(1.0, called="piece")] * 3
        made = tried(Script(tmp_path, self.refused(), *events), self.PATCH)
        assert made.trials == ()
        (why,) = whys(made).values()
        assert why.startswith("what is called in a step differs with it")

    def test_a_change_that_leaves_too_little_to_time_its_loops(self, tmp_path):
        self.loops(tmp_path, *[{"for x in y 1": {"ms": 10.0, "count": 50}}, {}] * 3)
        events = [alone(10.0), alone(1.0, called="piece")] * 3
        (why,) = whys(tried(Script(tmp_path, self.refused(), *events), self.PATCH)).values()
        assert why.startswith("the script ended before enough blocks")

    def test_where_nothing_is_compiled_there_is_nothing_to_switch(self, tmp_path):
        patch = Remedy("patch a.py:1", patch="--- a.py")
        self.loops(tmp_path, *[{"for x in y 1": {"ms": ms, "count": 9}} for ms in (4, 2) * 3])
        script = Script(tmp_path, *[[] for _ in range(6)])
        (one,) = tried(script, patch, compiles=False).trials
        assert script.asked == []
        assert (one.verdict, one.ratio, one.clock) == ("accepted", 2.0, None)

    def test_what_saves_compiling_is_not_asked_for_in_blocks(self, tmp_path):
        patch = Remedy("patch train.py:7", patch="--- train.py", alone=True)
        script = Script(tmp_path, measured(A.name, 1.0), *([alone(10.0), alone(5.0)] * 3))
        made = tried(script, patch, A)
        assert script.asked == [[A.name]]
        assert {one.name: one.verdict for one in made.trials}[patch.name] == "accepted"

    def test_loops_that_can_not_be_read_are_none(self, tmp_path):
        self.loops(tmp_path, *[["no", "loops"], {"for x in y 1": {"ms": "2"}}] * 3)
        events = [alone(10.0), alone(5.0)] * 3
        (one,) = tried(Script(tmp_path, self.refused(), *events), self.PATCH).trials
        assert one.ratio == 2.0

    def test_an_exception_is_its_end(self, tmp_path):
        error = {"event": "error", "t": 1.0, "type": "KeyError", "message": "'a'\nmore"}
        script = Script(tmp_path, self.refused(), alone(10.0), [error])
        (one,) = tried(script, self.PATCH).trials
        assert (one.verdict, one.why, one.ratio) == ("failed", "KeyError: 'a'", None)

    def test_a_script_that_ends_too_early(self, tmp_path):
        script = Script(tmp_path, self.refused(), [])
        made = tried(script, self.PATCH)
        assert whys(made) == {
            self.PATCH.name: "the script ended before enough blocks of it were measured"
        }

    def test_the_budget_holds_for_them_too(self, tmp_path):
        script = Script(tmp_path, self.refused(), alone(10.0), alone(5.0), seconds=20.0)
        made = tried(script, self.PATCH, budget=62.0)
        assert script.alone == [None, self.PATCH.name]
        assert whys(made) == {self.PATCH.name: "the budget of 62.0 s was spent"}

    def test_what_a_running_process_can_not_do_otherwise(self, tmp_path):
        why = "this torch has no setting torch._dynamo.config.x"
        script = Script(tmp_path, [trial(A.name, "not_applicable", why=why)])
        made = tried(script, A)
        assert [(one.verdict, one.why) for one in made.trials] == [("not_applicable", why)]


def test_a_process_that_ran_out_of_time_has_spent_the_budget(tmp_path):
    script = Script(tmp_path, measured(A.name, 1.0), ending="timeout")
    made = tried(script, A, B, budget=60.0)
    assert [one.name for one in made.trials] == [A.name]
    assert whys(made) == {"no_grad": "the budget of 60.0 s was spent"}


def test_a_wide_interval_around_nothing_is_said_to_be_noise(tmp_path):
    noisy = [*blocks(A.name, 1.2, noise=0.4), *agreeing(A.name), trial(A.name)]
    (one,) = tried(Script(tmp_path, noisy), A).trials
    assert (one.verdict, one.why) == (
        "no_gain",
        "too noisy to tell: try it alone, for longer or on a quieter machine",
    )


class TestByAHair:
    """Of many remedies that gain nothing some are above 1 by chance: those are measured again."""

    NOISE = 0.05

    def barely(self, name, ratio):
        return [*blocks(name, ratio, noise=self.NOISE, pairs=9), *agreeing(name), trial(name)]

    def test_the_second_result_counts(self, tmp_path):
        script = Script(tmp_path, [*self.barely(A.name, 1.07), *measured(B.name, 1.5)],
                        measured(A.name, 0.99), ending="exit")  # fmt: skip
        made = tried(script, A, B)
        assert script.asked[1] == [A.name]
        assert {one.name: one.verdict for one in made.trials} == {
            A.name: "slower",
            B.name: "accepted",
        }
        assert made.recommended.trials == (B.name,)

    def test_twice_is_enough(self, tmp_path):
        script = Script(tmp_path, self.barely(A.name, 1.07), self.barely(A.name, 1.08))
        made = tried(script, A)
        assert [one.verdict for one in made.trials] == ["accepted"]
        assert made.trials[0].ratio == pytest.approx(1.08, rel=0.01)

    def test_without_a_second_result_it_is_noise(self, tmp_path):
        script = Script(tmp_path, self.barely(A.name, 1.07), seconds=58.0)
        made = tried(script, A, budget=60.0)
        assert [(one.verdict, one.why[:12]) for one in made.trials] == [("no_gain", "too noisy to")]
        assert (made.recommended, made.not_tried) == (None, ())

    def test_what_is_clear_is_not_measured_again(self, tmp_path):
        script = Script(tmp_path, measured(A.name, 1.5))
        assert tried(script, A).recommended.trials == (A.name,)


class TestCrash:
    """A rung that takes its process down is a row; the others are asked for again."""

    KILLED = "the process ended with SIGSEGV"

    def begun(self, name):
        return {"event": "trial_begin", "t": 1.0, "name": name}

    def test_the_one_under_way_has_failed(self, tmp_path):
        first = [*measured(A.name, 1.4), self.begun(B.name)]
        script = Script(tmp_path, first, measured(C.name, 1.0), ending="signal",
                        failure=self.KILLED)  # fmt: skip
        made = tried(script, A, B, C, together=False)
        assert script.asked == [[A.name, B.name, C.name], [C.name]]
        assert {one.name: one.verdict for one in made.trials} == {
            A.name: "accepted",
            B.name: "failed",
            C.name: "no_gain",
        }
        assert made.trials[1].why == self.KILLED
        assert made.not_tried == ()

    def test_where_none_begins_all_fail_as_the_script(self, tmp_path):
        script = Script(tmp_path, [], failure="exit code 2: bench.py: error: no such option")
        made = tried(script, A, B)
        assert [(one.verdict, one.why[:11]) for one in made.trials] == [
            ("failed", "exit code 2"),
            ("failed", "exit code 2"),
        ]

    def test_the_end_of_the_budget_is_no_failure(self, tmp_path):
        script = Script(tmp_path, [self.begun(A.name)], ending="timeout", failure=None)
        assert whys(tried(script, A)) == {A.name: "the budget of 600 s was spent"}


class TestArguments:
    """Combinations of the script's arguments: a process each, with a part of the budget."""

    def asked(self, *values, names=(A.name,)):
        return tuple(
            Remedy(name, (name,), arguments=("--batch", value))
            for value in values
            for name in names
        )

    def swept(self, script, remedies, budget=600.0):
        plan = Plan(tuple(remedies), "eager", budget, together=False)
        return results(plan, script, script.apart, script.clock)

    def test_what_one_leaves_the_next_ones_have(self, tmp_path):
        events = measured(A.name, 1.4, base="eager")
        script = Script(tmp_path, events, events, events, seconds=60.0)
        made = self.swept(script, self.asked("1", "8", "32"))
        assert script.given == [200.0, 270.0, 480.0]
        assert [one.arguments[1] for one in made.trials] == ["1", "8", "32"]

    def test_the_first_ones_have_enough_of_a_short_budget(self, tmp_path):
        events = measured(A.name, 1.4, base="eager")
        script = Script(tmp_path, events, events, seconds=50.0)
        made = self.swept(script, self.asked("1", "8", "32"), budget=102.0)
        assert script.given == [50.0, 50.0]
        assert [row.arguments for row in made.not_tried] == [("--batch", "32")]
        assert whys(made) == {A.name: "the budget of 102 s was spent"}

    def test_an_interrupt_ends_all(self, tmp_path):
        script = Script(tmp_path, [], ending="interrupted")
        made = self.swept(script, self.asked("1", "8"))
        assert script.asked == [[A.name]]
        assert [row.why for row in made.not_tried] == ["interrupted", "interrupted"]

    def test_recommended_is_what_gains_somewhere_and_loses_nowhere(self, tmp_path):
        small = [*measured(A.name, 2.0, base="eager"), *measured(B.name, 1.2, base="eager")]
        large = [*measured(A.name, 0.9, base="eager"), *measured(B.name, 1.8, base="eager")]
        made = self.swept(
            Script(tmp_path, small, large), self.asked("1", "8", names=(A.name, B.name))
        )
        best = made.recommended
        assert best.trials == (B.name,)
        assert best.ratio == pytest.approx((1.2 * 1.8) ** 0.5, rel=0.01)
        assert best.interval[0] < 1.21
        assert best.interval[1] > 1.79
        assert made.notes == (f"--batch 1: {A.name} is best (2.00×).",)

    def test_of_several_as_fast_the_first_without_a_price_is_recommended(self, tmp_path):
        priced = "guards=skip"
        both = [
            event
            for name, ratio in ((priced, 1.41), (A.name, 1.40), (B.name, 1.405))
            for event in measured(name, ratio, noise=0.02, base="eager")
        ]
        made = self.swept(
            Script(tmp_path, both, both),
            self.asked("1", "8", names=(priced, A.name, B.name)),
        )
        assert made.recommended.trials == (A.name,)

    def test_a_combination_that_can_not_run_does_not_decide(self, tmp_path):
        error = {"event": "error", "t": 1.0, "type": "OutOfMemoryError", "message": "no"}
        script = Script(tmp_path, measured(A.name, 1.4, base="eager"), [error])
        made = self.swept(script, self.asked("1", "64"))
        assert made.recommended.trials == (A.name,)
        assert made.notes == ("--batch 64: every trial failed.",)


class TestEvidence:
    """After a sweep the recommendation says what it rests on."""

    def test_what_comes_next_and_when_it_pays(self, tmp_path):
        both = [*measured(A.name, 2.0, base="eager"), *measured(B.name, 1.2, base="eager")]
        plan = Plan((A, B), "eager", 600.0, together=False)
        script = Script(tmp_path, both)
        best = results(plan, script, script.apart, script.clock).recommended
        assert f"next comes {B.name} (1.20×)" in best.why
        assert "2.50 s of compilation pay off after 500 steps" in best.why

    def test_not_where_it_is_compared_with_the_compiled_step(self, tmp_path):
        assert "pay off" not in tried(Script(tmp_path, measured(A.name, 2.0)), A).recommended.why


def ended(relative_error, results=1):
    """The check of compiled code at a process's end; None: nothing could be compared."""
    return {
        "event": "end_check", "t": 9.0, "region_id": 0, "seconds": 0.1,
        "compared": relative_error is not None, "why": None, "results": results, "name": "output",
        "dtype": "float32", "relative_error": relative_error, "noise": 0.0, "low_precision": False,
        "operators": [],
    }  # fmt: skip


def raised(**more):
    return [{"event": "error", "t": 2.0, "type": "RuntimeError", "message": "twice", **more}]


class TestWhatIsWrong:
    """Accepted for what it fixes, however fast it is; otherwise for nothing."""

    RIGHT = Remedy("a=1", ("a=1",), rules=("acc-unlike-eager",), fixes="results")
    EAGER = Remedy("eager=f", ("eager=f",), rules=("acc-unlike-eager",), fixes="results")
    RUNS = Remedy("b=1", ("b=1",), rules=("cap-fails-compiled",), fixes="failure")

    def wrong(self, ms):
        return [*alone(ms), ended(0.3)]

    def right(self, ms):
        return [*alone(ms), ended(1e-8)]

    def test_right_results_are_accepted_though_they_are_slower(self, tmp_path):
        turns = [self.wrong(10.0), self.right(20.0)] * 3
        script = Script(tmp_path, *turns)
        made = tried(script, self.RIGHT, self.EAGER)
        assert script.alone == [None, "a=1"] * 3
        assert set(script.ways) == {"checked"}
        (one,) = made.trials
        assert (one.verdict, one.fixes, one.ratio) == ("accepted", "results", 0.5)
        assert (one.outputs_agree, one.apart) == (True, True)
        assert (made.recommended.fixes, made.recommended.ratio) == ("results", 0.5)
        assert whys(made) == {"eager=f": "a=1 fixes it"}

    def test_results_that_stay_wrong_settle_it_at_once(self, tmp_path):
        script = Script(tmp_path, self.wrong(10.0), self.wrong(5.0))
        (one,) = tried(script, self.RIGHT).trials
        assert (one.verdict, one.fixes) == ("no_gain", None)
        assert one.why == ("compiled results are as wrong with it as without it: acc-unlike-eager")

    def test_what_is_not_seen_without_it_is_not_fixed_by_it(self, tmp_path):
        script = Script(tmp_path, self.right(10.0), self.right(5.0))
        (one,) = tried(script, self.RIGHT).trials
        assert (one.verdict, one.fixes) == ("no_gain", None)
        assert one.why.endswith("not seen in a process as long as the remedy's")

    def test_what_only_a_comparison_shows_needs_one(self, tmp_path):
        script = Script(tmp_path, self.wrong(10.0), [*alone(5.0), ended(None, None)])
        (one,) = tried(script, self.RIGHT).trials
        assert (one.verdict, one.why) == (
            "no_gain",
            "results could not be compared with eager's",
        )

    def test_a_process_that_the_budget_ends_says_nothing(self, tmp_path):
        script = Script(tmp_path, self.wrong(10.0), [], seconds=299.0)
        made = tried(script, self.RIGHT)
        assert (made.trials, list(whys(made))) == ((), ["a=1"])
        assert "budget" in whys(made)["a=1"]

    def test_one_process_of_each_is_enough_where_the_budget_ends(self, tmp_path):
        script = Script(tmp_path, self.wrong(10.0), self.right(20.0), seconds=299.0)
        (one,) = tried(script, self.RIGHT).trials
        assert (one.verdict, one.fixes, one.pairs) == ("accepted", "results", 1)

    def test_what_is_faster_and_wrong_is_not_recommended(self, tmp_path):
        turns = [self.wrong(10.0), self.right(20.0)] * 3
        script = Script(tmp_path, measured(A.name, 1.5), *turns)
        made = tried(script, A, self.RIGHT)
        assert [one.verdict for one in made.trials] == ["accepted", "accepted"]
        assert made.recommended.trials == ("a=1",)

    def test_a_script_that_fails_is_timed_against_eager(self, tmp_path):
        turns = [alone(10.0), self.right(8.0)] * 3
        script = Script(tmp_path, raised(), *turns)
        made = tried(script, self.RUNS, fails=True)
        assert script.ways == ["checked", *["eager", "checked"] * 3]
        (one,) = made.trials
        assert (one.verdict, one.fixes, one.ratio) == ("accepted", "failure", 1.25)
        assert "timed against the script in eager" in one.notes
        assert made.recommended.fixes == "failure"

    def test_a_script_that_fails_with_it_too(self, tmp_path):
        script = Script(tmp_path, raised(), alone(10.0), [*alone(8.0), *raised()])
        (one,) = tried(script, self.RUNS, fails=True).trials
        assert (one.verdict, one.why) == ("failed", "RuntimeError: twice")

    def test_settings_that_could_not_be_in_force(self, tmp_path):
        refused = [*alone(9.0), trial("a=1", "not_applicable", why="no such setting")]
        script = Script(tmp_path, self.wrong(10.0), refused)
        (one,) = tried(script, self.RIGHT).trials
        assert (one.verdict, one.why) == ("not_applicable", "no such setting")

    def test_newly_compiled_code_that_is_wrong_is_tried_in_one_process(self, tmp_path):
        afresh = Remedy("c=1", ("c=1",), rules=("acc-backend-bug",), fixes="results", afresh=True)
        checks = [check("c=1", "trial", True), check("c=1", "compiled", False)]
        script = Script(tmp_path, [*blocks("c=1", 0.8), *checks, trial("c=1")])
        (one,) = tried(script, afresh).trials
        assert (one.verdict, one.fixes) == ("accepted", "results")
        script = Script(tmp_path / "same", measured("c=1", 1.2))
        (one,) = tried(script, afresh).trials
        assert (one.verdict, one.fixes) == ("no_gain", None)

"""What a trials process measured, and the verdict on it."""

import re
import shutil
from types import SimpleNamespace

import pytest
from recordings import unpack
from trial_events import agreeing, block, blocks, check, measured, remedy, trial, write

from traceview.trials import Remedy
from traceview.trials.judging import (
    NO_CPU_TEMPLATE,
    NO_GPU,
    NOTHING_COMPILED,
    beyond_noise,
    judged,
    outside_of_steps,
)
from traceview.trials.reading import Died, read_died, read_trials
from traceview.trials.remedies import AUTOTUNING, CUDAGRAPH_MEMORY

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


@pytest.mark.parametrize(
    ("ratio", "expected", "said"),
    [
        (1.0, {"predicted_s": 6.0}, True),
        (0.8, {"predicted_s": 6.0}, True),
        (1.4, {"predicted_s": 6.0}, False),
        (1.0, {"predicted_s": 6.0, "predicted_ms": 0.5}, False),
        (1.0, {}, False),
    ],
)
def test_what_saves_compiling_alone_says_so_where_no_step_gains(tmp_path, ratio, expected, said):
    asked = Remedy(NAME, (NAME,), **expected)
    made = verdict_on(tmp_path, measured(NAME, ratio), asked=asked)
    assert ("what it is to save is compiling, 6.00 s, and no step" in made.notes) == said


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

    @pytest.mark.parametrize(("same", "agree"), [(True, True), (False, False), (None, None)])
    def test_a_function_that_is_compiled_as_well_is_compared(self, tmp_path, same, agree):
        own = check(NAME, "trial", same, "output of f()", region_id=2, function="f", why="no room")
        made = verdict_on(tmp_path, [*blocks(NAME, 1.4), *agreeing(NAME), own, trial(NAME)])
        assert made.outputs_agree is agree
        assert (made.verdict == "accepted") == (agree is not False)
        if agree is None:
            assert made.why == "what f() gives was not compared: no room"


@pytest.mark.parametrize("state", ["failed", "not_applicable"])
def test_without_figures_the_reason_stays(tmp_path, state):
    made = verdict_on(tmp_path, [trial(NAME, state, why="RuntimeError: no", compile_s=None)])
    assert (made.verdict, made.why, made.ratio, made.interval) == (
        state, "RuntimeError: no", None, None,
    )  # fmt: skip


def test_too_few_pairs_are_no_verdict(tmp_path):
    assert verdict_on(tmp_path, measured(NAME, 1.4, pairs=2)) is None


def test_a_trial_that_did_not_end_has_the_pairs_until_then(tmp_path):
    raw = write(tmp_path, [*blocks(NAME, 1.4), *measured("no_grad", 1.2)])
    found = read_trials(raw, "compiled")[NAME]
    assert (found.ended.state, found.pairs) == ("unfinished", 8)


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


class TestLogged:
    """What torch's logs of the process say of a trial: of the time between its begin and end."""

    @pytest.fixture
    def logged(self, tmp_path):
        """The logs of a recorded run as those of a trials process, of one trial all the time."""

        def read(recorded, name=NAME, **more):
            run = unpack(recorded, tmp_path)
            raw = run / "raw" / "trials-1"
            raw.mkdir()
            shutil.copytree(run / "raw" / "cold" / "structured", raw / "structured")
            for file in (run / "raw" / "cold").glob("torch_logs.txt*"):
                shutil.copy(file, raw)
            (log, *_) = sorted((raw / "structured").glob("*.log*"))
            (events, *_) = sorted((run / "raw" / "cold").glob("events-*"))
            pid = int(re.search(r"events-(\d+)", events.name)[1])
            assert log.stat().st_size
            span = {"began_us": 0.0, "timed_us": 1e17, **more}
            found = [*blocks(name, 1.4, base="eager"), *agreeing(name), trial(name, **span)]
            write(raw, found, pid=pid)
            return read_trials(raw, "eager")[name]

        return read

    def test_cudagraphs_that_are_recorded(self, logged):
        found = logged("gpu-cg_skip_cpu_good").logged
        assert found.cudagraphs == "yes"
        assert found.cudagraphs_why is None

    def test_those_that_torch_skips(self, logged):
        found = logged("gpu-cg_skip_mutation").logged
        assert found.cudagraphs == "skipped"
        assert "mutated inputs" in found.cudagraphs_why

    def test_those_of_a_part_of_the_graph(self, logged):
        found = logged("gpu-cg_skip_cpu").logged
        assert (found.cudagraphs, found.cudagraphs_why) == ("yes", "not all of it: DeviceCopy ops")

    def test_autotuning(self, logged):
        assert logged("bad-ct_autotune_cost").logged.autotune_s > 1

    def test_recompiles(self, logged):
        assert logged("bad-rc_python_constant").logged.recompiles >= 2

    def test_what_is_logged_outside_of_it_is_not_its_own(self, logged):
        found = logged("bad-ct_autotune_cost", timed_us=1.0).logged
        assert (found.autotune_s, found.recompiles, found.cudagraphs) == (0.0, 0, None)

    def test_without_logs_nothing_is_known(self, tmp_path):
        folder = tmp_path / "run" / "raw" / "trials-1"
        events = measured(NAME, 1.4)
        found = read_trials(write(folder, events), "compiled")[NAME].logged
        assert (found.recompiles, found.autotune_s, found.cudagraphs) == (None, None, None)

    def test_a_break_under_fullgraph_has_its_line(self, logged):
        found = logged("bad-gb_item")
        assert re.fullmatch(r"\w+\.py:\d+", found.logged.place)


class TestRow:
    """What a row of the record says besides its gain."""

    def made(self, tmp_path, name, *checks, on_gpu=None, ratio=1.25, baseline="eager", **ended):
        events = [*blocks(name, ratio, base=baseline), *checks, trial(name, **ended)]
        found = read_trials(write(tmp_path, events), baseline)[name]
        return judged(remedy(name), found, baseline, on_gpu)

    def test_break_even_is_against_eager(self, tmp_path):
        # 2.5 s of compilation, 2 ms of 10 saved at every step
        assert self.made(tmp_path, NAME).break_even_steps == pytest.approx(1250, rel=0.02)

    @pytest.mark.parametrize("ratio", [0.8, 1.005])
    def test_what_is_not_accepted_never_pays(self, tmp_path, ratio):
        assert self.made(tmp_path, NAME, ratio=ratio).break_even_steps is None

    def test_against_the_compiled_step_there_is_none(self, tmp_path):
        assert self.made(tmp_path, NAME, baseline="compiled").break_even_steps is None

    @pytest.mark.parametrize(("again", "seconds"), [(1, 0.25), (2, None), (None, None)])
    def test_warm_seconds_count_where_it_compiled_as_often(self, tmp_path, again, seconds):
        made = self.made(tmp_path, NAME, warm_compiles=again, warm_compile_s=0.25)
        assert made.compile_seconds_warm == seconds

    def test_errors_are_of_the_output_with_the_largest_for_its_size(self, tmp_path):
        small = check(NAME, "trial", True, "y", rmse=0.5, scale=1000.0, max_abs_diff=3.0)
        large = check(NAME, "trial", True, "z", rmse=0.25, scale=1.0, max_abs_diff=0.75)
        made = self.made(tmp_path, NAME, small, large)
        assert (made.rmse, made.eager_rmse, made.max_abs_diff) == (0.25, 1e-7, 0.75)

    def test_no_one_gains_by_cudagraphs_on_a_cpu(self, tmp_path):
        made = self.made(tmp_path, "mode=reduce-overhead", on_gpu=False)
        assert (made.cudagraphs, made.cudagraphs_why) == ("no", "on a CPU")
        assert made.notes == (NO_GPU,)
        assert CUDAGRAPH_MEMORY not in made.price
        on_gpu = self.made(tmp_path, "mode=reduce-overhead", on_gpu=True)
        assert (on_gpu.cudagraphs, on_gpu.notes) == (None, ())
        assert CUDAGRAPH_MEMORY in on_gpu.price

    @pytest.mark.parametrize("autotuned", [0.0, 2.0])
    def test_nor_by_autotuning_that_chose_nothing(self, tmp_path, autotuned):
        name = "mode=max-autotune-no-cudagraphs"
        events = [*blocks(name, 1.2, base="eager"), trial(name)]
        found = read_trials(write(tmp_path, events), "eager")[name]
        logged = found.logged.__class__(recompiles=0, autotune_s=autotuned)
        made = judged(remedy(name), found.__class__(
            found.ended, found.ratio, found.pairs, found.clock, found.outputs, logged
        ), "eager", on_gpu=False)  # fmt: skip
        assert made.autotune_seconds == autotuned
        assert (NO_CPU_TEMPLATE in made.notes) is (autotuned == 0)
        assert (AUTOTUNING in made.price) is (autotuned > 0)

    def test_a_trial_that_compiled_nothing_says_so(self, tmp_path):
        assert NOTHING_COMPILED in self.made(tmp_path, NAME, compiles=0, graphs=0).notes
        assert self.made(tmp_path, "eager=Net", compiles=0, graphs=0).notes == ()

    def test_a_debug_folder_is_named_from_the_run_folder(self, tmp_path):
        raw = tmp_path / "raw" / "trials-1"
        events = [*blocks(NAME, 1.2), trial(NAME, debug=str(raw / "debug" / "1"))]
        found = read_trials(write(raw, events), "compiled")[NAME]
        assert judged(remedy(NAME), found).debug == "raw/trials-1/debug/1"


class TestDied:
    """A process that ended before its trials had."""

    def test_the_trial_under_way(self, tmp_path):
        begun = [{"event": "trial_begin", "t": 1.0, "name": name} for name in ("a", "b")]
        events = [begun[0], trial("a"), begun[1]]
        assert read_died(write(tmp_path, events)) == Died("b", None)

    def test_the_scripts_own_exception(self, tmp_path):
        error = {"event": "error", "t": 1.0, "type": "KeyError", "message": "x\nmore"}
        assert read_died(write(tmp_path, [error])) == Died(None, "KeyError: x")

    def test_one_that_left_no_events(self, tmp_path):
        assert read_died(tmp_path) == Died()


@pytest.mark.parametrize(
    ("verdict", "apart", "calls", "notes"),
    [
        ("accepted", False, 8, 1),
        ("accepted", True, 8, 0),  # a whole process ran with it
        ("accepted", False, 300, 0),
        ("accepted", False, 0, 0),
        ("no_gain", False, 8, 0),
    ],
)
def test_callables_outside_of_the_steps_are_named(verdict, apart, calls, notes):
    regions = [
        SimpleNamespace(name="sketch", calls=300, headline=True),
        SimpleNamespace(name="encode", calls=calls, headline=False),
    ]
    found = [*outside_of_steps([SimpleNamespace(verdict=verdict, apart=apart)], regions)]
    assert [each.split(" is not called")[0] for each in found] == ["encode"] * notes

"""A change is claimed only where the intervals or the noise allow it."""

import pytest
from sides import changed, side

from traceview.check import Limits, check
from traceview.compare import compare
from traceview.compare.noise import Sides, beyond


def figure(comparison, key):
    (found,) = (p for p in (*comparison.figures, *comparison.phases) if p.key == key)
    return found


def timed(given, eager=1.0, compiled=1.0, clock=None, pairs=None):
    """A run whose steps take that many times as long."""

    def edit(data):
        for pair in data["pairs"]:
            pair["eager_ms"] *= eager
            pair["compiled_ms"] *= compiled
            pair["speedup"] = pair["eager_ms"] / pair["compiled_ms"]
        verdict = data["verdict"]
        verdict["eager_ms"] *= eager
        verdict["compiled_ms"] *= compiled
        verdict["speedup"] *= eager / compiled
        verdict["clock"] = clock or verdict["clock"]
        data["pairs"] = data["pairs"][-pairs:] if pairs else data["pairs"]

    return changed(given, edit)


RUN = "gpu-transformer_training"


def test_a_step_that_takes_twice_as_long_is_slower():
    comparison = compare(side(RUN), timed(side(RUN), compiled=2.0))
    assert comparison.outcome == "slower"
    step = figure(comparison, "compiled_ms")
    assert step.change == "worse"
    assert step.ratio == pytest.approx(2.0)
    assert step.ratio_interval[0] < 2.0 < step.ratio_interval[1]
    assert comparison.sentence.startswith("B is slower than A: a compiled step takes")
    assert compare(timed(side(RUN), compiled=2.0), side(RUN)).outcome == "faster"


def test_a_change_within_what_processes_differ_by_is_not_claimed():
    comparison = compare(side(RUN), timed(side(RUN), compiled=1.04))
    assert comparison.outcome == "no_difference_shown"
    assert figure(comparison, "compiled_ms").change == "within_noise"
    assert "which is within noise" in comparison.sentence


def test_where_eager_changed_as_much_compiling_is_not_blamed():
    comparison = compare(side(RUN), timed(side(RUN), eager=2.0, compiled=2.0))
    assert comparison.outcome == "other_conditions"
    assert "an eager step changed as well" in comparison.sentence
    assert figure(comparison, "speedup").change == "within_noise"


def test_different_clocks_are_not_compared():
    step = figure(compare(side(RUN), timed(side(RUN), compiled=3.0, clock="host")), "compiled_ms")
    assert (step.change, step.basis) == (
        "within_noise",
        "timed by different clocks: not comparable",
    )


def test_two_blocks_are_no_interval():
    step = figure(compare(side(RUN), timed(side(RUN), compiled=3.0, pairs=2)), "compiled_ms")
    assert (step.change, step.ratio_interval) == ("within_noise", None)


def compiling(given, factor):
    def edit(data):
        data["compile_time"]["seconds"] *= factor
        data["compile_seconds"] *= factor

    return changed(given, edit)


def test_seconds_measured_once_need_to_differ_by_more_than_the_machine_did():
    quiet = side(RUN)
    allowed = Sides(quiet, quiet).unrest(0.25)
    assert allowed >= 0.25
    less = compare(quiet, compiling(quiet, 1 + allowed * 0.9))
    more = compare(quiet, compiling(quiet, 1 + allowed * 1.1))
    assert figure(less, "compile_seconds").change == "within_noise"
    assert figure(more, "compile_seconds").change == "worse"
    assert "Cold compile: " in more.sentence


@pytest.mark.parametrize(
    ("before", "after", "noise", "least", "said"),
    [
        (10.0, 13.0, 0.25, 0.5, True), (13.0, 10.0, 0.25, 0.5, True),
        (10.0, 12.4, 0.25, 0.5, False), (0.1, 0.4, 0.25, 0.5, False),
        (0.0, 1.0, 0.0, 0.0, True), (0.0, 0.0, 0.0, 0.0, False), (2.0, 3.0, 0.0, 0.0, True),
    ],
)  # fmt: skip
def test_beyond(before, after, noise, least, said):
    assert beyond(before, after, noise, least) is said


def test_what_was_not_recorded_is_not_compared():
    def unmeasured(data):
        data["verdict"].update(compiled_ms=None, eager_ms=None, speedup=None)
        data["counts"], data["pairs"] = {}, []

    comparison = compare(side(RUN), changed(side(RUN), unmeasured))
    assert comparison.outcome == "not_measured"
    assert figure(comparison, "compiled_ms").change == "not_recorded"
    assert figure(comparison, "kernels_per_step").basis == "not recorded in one of the runs"


def elsewhere(given, **facts):
    """The same run, 4 times as slow to compile, with these facts of its machine."""

    def edit(data):
        data["environment"] |= facts
        data["compile_time"]["seconds"] *= 4
        data["compile_time"]["first_call_ms"] *= 4
        for row in data["compile_time"]["frames"]:
            row["total_s"] *= 4
        for finding in data["findings"]:
            for cost in filter(None, (finding["cost"], finding["whole_cost"])):
                cost |= {name: ms * 40 for name, ms in cost.items() if isinstance(ms, float)}

    return changed(given, edit)


@pytest.mark.parametrize(
    "facts",
    [{"device_name": "NVIDIA A100"}, {"cpu_threads": 3}, {"cpu_name": "Xeon"}],
)
def test_what_was_measured_once_is_not_compared_across_machines(facts):
    old = elsewhere(changed(side(RUN), lambda data: None), cpu_name="EPYC")
    same, other = elsewhere(old, cpu_name="EPYC"), elsewhere(old, **facts)
    assert figure(compare(old, same), "compile_seconds").change == "worse"
    assert "grew" in {frame.change for frame in compare(old, same).frames}

    comparison = compare(old, other)
    for key in ("compile_seconds", "first_call_ms", "device_busy_ms"):
        pair = figure(comparison, key)
        assert pair.change in ("within_noise", "same")
    (name,) = facts
    assert "differs" in figure(comparison, "compile_seconds").basis
    assert "Cold compile" not in comparison.sentence
    assert {frame.change for frame in comparison.frames} == {"unknown"}
    assert not {cause.change for cause in comparison.causes} & {"grew", "shrank"}
    assert any("not compared" in note for note in comparison.notes)
    slower = check(other, Limits(no=("slowdowns",)), old)
    (cold,) = (result for result in slower.results if result.what == "Cold compile")
    assert cold.status == "violated"
    assert str(facts[name]) in cold.why
    assert check(same, Limits(no=("slowdowns",)), old).of("violated")


def test_a_fact_that_one_run_did_not_record_is_no_other_machine():
    old = elsewhere(side(RUN), cpu_name=None)
    pair = figure(compare(old, elsewhere(old, cpu_name="Xeon")), "compile_seconds")
    assert pair.change == "worse"

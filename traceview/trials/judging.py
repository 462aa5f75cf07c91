"""A trial's verdict, and which of several trials is best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import hypot, log
from statistics import median
from typing import Any

from traceview.diagnosis.sentence import NOISY
from traceview.trials.model import Trial, Word
from traceview.trials.reading import Apart, Measured
from traceview.trials.remedies import Remedy
from traceview.words import numbers as fmt

TOO_NOISY = "too noisy to tell: try it alone, for longer or on a quieter machine"
#: torch's backends for finding faults, and what each adds to the one before it.
STAGES = {
    "eager": "the fault is in what Dynamo captures",
    "aot_eager": "the fault is in what AOTAutograd makes of the graph",
    "aot_eager_decomp_partition": "the fault is in a decomposition or in the partitioner",
    "inductor": "the fault is in Inductor's passes or generated code",
}
#: What trials in processes apart do not record.
_OF_ONE_PROCESS = (
    *("compiles", "graphs", "graph_breaks"),
    *("peak_bytes", "baseline_peak_bytes", "outputs_agree"),
)
#: A smaller gain is not worth an edit.
LEAST_GAIN = 0.01
#: Processes of each kind without which there is no verdict.
ENOUGH_TURNS = 3
#: … and with which so many of the ratios of any two may be left out on each side.
ENOUGH_FOR_95, MOST_OUT = 5, 2
#: A trial whose peak is higher by more than this part says so.
MORE_MEMORY = 0.1


def judged(remedy: Remedy, measured: Measured) -> Trial | None:
    """The trial of ``remedy``; None where too few pairs of blocks were measured for a verdict."""
    ended, timed, outputs = measured.ended, measured.ratio, measured.outputs
    interval = timed.interval if timed else None
    verdict: Word
    if ended.state in ("failed", "not_applicable"):
        verdict, why = ended.state, ended.why
    elif timed is None or interval is None:
        return None
    else:
        verdict, why = _verdict(timed.ratio, interval), ended.why
        if verdict == "no_gain" and interval[1] > NOISY * interval[0]:
            why = TOO_NOISY
        if outputs.agree is False:
            verdict = "changes_results"
        if outputs.agree is not True:
            why = outputs.why
    price, peak, before = remedy.price, ended.peak_bytes, ended.baseline_peak_bytes
    if peak is not None and before is not None and peak > (1 + MORE_MEMORY) * before:
        price = (*price, f"memory: a peak of {fmt.size(peak)} instead of {fmt.size(before)}")
    return _trial(
        remedy,
        verdict=verdict,
        why=why,
        ratio=timed.ratio if timed else None,
        interval=interval,
        pairs=measured.pairs,
        clock=measured.clock,
        baseline_ms=timed.base_ms if timed else None,
        trial_ms=timed.other_ms if timed else None,
        measured_ms=timed.base_ms - timed.other_ms if timed else None,
        compile_seconds=ended.compile_s,
        compiles=ended.compiles,
        graphs=ended.graphs,
        graph_breaks=ended.graph_breaks,
        peak_bytes=ended.peak_bytes,
        baseline_peak_bytes=ended.baseline_peak_bytes,
        outputs_agree=outputs.agree,
        price=price,
    )


def judged_apart(remedy: Remedy, usual: Sequence[Apart], changed: Sequence[Apart]) -> Trial | None:
    """The trial of a remedy that ran in processes of its own, in turns with the script as it is.

    So few are no sample: the interval is from the least to the largest ratio of any two of them. Of
    five and five it is Mann and Whitney's, of 95 %: two on each side are left out.
    """
    base, other = _timed_alike(usual, changed)
    error = next((each.error for each in changed if each.error and not each.timed), None)
    pairs = min(len(base), len(other))
    if pairs < ENOUGH_TURNS and not error:
        return None
    ratio = median(base) / median(other) if pairs else None
    # As findings put it, where the script's own step was timed.
    steps = [each.step_ms for each in usual if each.step_ms is not None] or base
    before = median(steps) if steps else None
    after = before / ratio if before is not None and ratio else None
    ratios = sorted(one / another for one in base for another in other)
    out = MOST_OUT if pairs >= ENOUGH_FOR_95 else 0
    interval = (ratios[out], ratios[-1 - out]) if pairs else None
    failed = error is not None or ratio is None or interval is None
    seconds = [each.compile_s for each in changed if each.compile_s is not None]
    return _trial(
        remedy,
        verdict="failed" if failed else _verdict(ratio, interval),  # type: ignore[arg-type]
        why=error.partition("\n")[0] if error else "outputs were not compared: processes apart",
        ratio=ratio,
        interval=interval,
        pairs=pairs,
        apart=True,
        clock=next((each.clock for each in changed if each.clock), None),
        baseline_ms=before,
        trial_ms=after,
        measured_ms=before - after if before is not None and after is not None else None,
        compile_seconds=seconds[0] if seconds else None,
        **dict.fromkeys(_OF_ONE_PROCESS),
        price=remedy.price,
    )


def _timed_alike(
    usual: Sequence[Apart], changed: Sequence[Apart]
) -> tuple[list[float], list[float]]:
    """Milliseconds of both sides' processes, of what is the same on both.

    That is the loop of the script that both went through most often. Where none is known it is a
    call of the same callable: another one may be called more often or less.
    """
    sides = [[each for each in side if each.timed] for side in (usual, changed)]
    loops = [set(each.loops) for side in sides for each in side]
    if all(sides) and (common := set.intersection(*loops)):
        name = max(common, key=lambda name: (sides[0][0].loops[name][1], name))
        base, other = ([each.loops[name][0] for each in side] for side in sides)
        return base, other
    if len({each.anchor for side in sides for each in side}) > 1:
        return [], []
    base, other = ([each.step_ms for each in side if each.step_ms] for side in sides)
    return base, other


def _trial(remedy: Remedy, **found: Any) -> Trial:  # noqa: ANN401 (fields of Trial)
    return Trial(
        name=remedy.name,
        rule=next(iter(remedy.rules), None),
        rules=remedy.rules,
        settings=remedy.settings,
        patch=remedy.patch,
        predicted_ms=remedy.predicted_ms,
        **found,
    )


def _verdict(ratio: float, interval: tuple[float, float]) -> Word:
    low, high = interval
    if low > 1 and ratio >= 1 + LEAST_GAIN:
        return "accepted"
    return "slower" if high < 1 else "no_gain"


def first_broken(trials: Iterable[Trial]) -> str | None:
    """Which backend of torch's ladder, each with a stage more than the one before, is the first to
    fail or to differ from eager, in a sentence; None where all that were tried agree."""
    rungs = {name: trial for trial in trials for name in trial.settings if len(trial.settings) == 1}
    for name in (f"backend={rung}" for rung in STAGES):
        trial = rungs.get(name)
        if trial is not None and trial.verdict in ("failed", "changes_results"):
            what = "fails" if trial.verdict == "failed" else "differs from eager"
            return f"{name} is the first backend that {what}: {STAGES[name.partition('=')[2]]}"
    return None


def accepted(trials: Iterable[Trial]) -> list[Trial]:
    """The accepted ones, the fastest first."""
    found = [trial for trial in trials if trial.verdict == "accepted"]
    return sorted(found, key=lambda trial: -(trial.ratio or 0.0))


def by_a_hair(trial: Trial) -> bool:
    """Whether an accepted trial's interval is nearer to 1 than half of its own lower part is wide.

    On a scale of logarithms; a range of processes apart is no interval.
    """
    if trial.verdict != "accepted" or trial.apart or not trial.ratio or not trial.interval:
        return False
    low = log(trial.interval[0])
    return low < (log(trial.ratio) - low) / 2


def beyond_noise(one: Trial, other: Trial) -> bool:
    """Whether ``one`` is faster than ``other``, of the same baseline, beyond both their intervals.

    Errors of two independent ratios add up as squares, on a scale of logarithms.
    """
    if not (one.ratio and other.ratio and one.interval and other.interval):
        return False
    below, above = log(one.ratio / one.interval[0]), log(other.interval[1] / other.ratio)
    return log(one.ratio / other.ratio) > hypot(below, above)

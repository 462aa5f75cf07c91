"""A trial's verdict, and which of several trials is best."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot, log

from traceview.trials.model import Trial, Word
from traceview.trials.reading import Measured
from traceview.trials.remedies import Remedy
from traceview.words import numbers as fmt

#: Nobody edits a program for less.
LEAST_GAIN = 0.01
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
        if outputs.agree is False:
            verdict = "changes_results"
        if outputs.agree is not True:
            why = outputs.why
    return Trial(
        name=remedy.name,
        rule=next(iter(remedy.rules), None),
        rules=remedy.rules,
        settings=remedy.settings,
        patch=remedy.patch,
        verdict=verdict,
        why=why,
        ratio=timed.ratio if timed else None,
        interval=interval,
        pairs=measured.pairs,
        clock=measured.clock,
        baseline_ms=timed.base_ms if timed else None,
        trial_ms=timed.other_ms if timed else None,
        predicted_ms=remedy.predicted_ms,
        measured_ms=timed.base_ms - timed.other_ms if timed else None,
        compile_seconds=ended.compile_s,
        compiles=ended.compiles,
        graphs=ended.graphs,
        graph_breaks=ended.graph_breaks,
        peak_bytes=ended.peak_bytes,
        baseline_peak_bytes=ended.baseline_peak_bytes,
        outputs_agree=outputs.agree,
        price=(*remedy.price, *_memory(ended.peak_bytes, ended.baseline_peak_bytes)),
    )


def _verdict(ratio: float, interval: tuple[float, float]) -> Word:
    low, high = interval
    if low > 1 and ratio >= 1 + LEAST_GAIN:
        return "accepted"
    return "slower" if high < 1 else "no_gain"


def _memory(peak: int | None, before: int | None) -> Iterable[str]:
    if peak is not None and before is not None and peak > (1 + MORE_MEMORY) * before:
        yield f"memory: a peak of {fmt.size(peak)} instead of {fmt.size(before)}"


def accepted(trials: Iterable[Trial]) -> list[Trial]:
    """The accepted ones, the fastest first."""
    found = [trial for trial in trials if trial.verdict == "accepted"]
    return sorted(found, key=lambda trial: -(trial.ratio or 0.0))


def beyond_noise(one: Trial, other: Trial) -> bool:
    """Whether ``one`` is faster than ``other``, of the same baseline, beyond both their intervals.

    Errors of two independent ratios add up as squares, on a scale of logarithms.
    """
    if not (one.ratio and other.ratio and one.interval and other.interval):
        return False
    below, above = log(one.ratio / one.interval[0]), log(other.interval[1] / other.ratio)
    return log(one.ratio / other.ratio) > hypot(below, above)

"""A trial's verdict, and which of several trials is best."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import ceil, exp, fsum, hypot, log, prod
from statistics import median
from typing import Any

from traceview.diagnosis.model import Region
from traceview.diagnosis.sentence import NOISY
from traceview.torchtext.stages import STAGES
from traceview.trials.model import Baseline, Cudagraphs, Fixes, Recommended, Trial, Word
from traceview.trials.reading import Apart, Measured
from traceview.trials.remedies import AUTOTUNING, CUDAGRAPH_MEMORY, Remedy, code_of
from traceview.words import numbers as fmt
from traceview.words.text import listed

_CUDAGRAPHS = re.compile(r"mode=(reduce-overhead|max-autotune)$|.*triton\.cudagraphs=True")
_AUTOTUNE = re.compile(r"mode=max-autotune|.*max_autotune")
NO_GPU = "no cudagraphs on a CPU: they record work of a GPU"
NO_CPU_TEMPLATE = (
    "torch timed no kernel: on a CPU it has templates only for products with frozen weights"
)
NO_TEMPLATE = "torch timed no kernel: it has no template for what this script computes"
NOTHING_COMPILED = "nothing was compiled: its steps ran in eager"
FIXED = {
    "results": "compiled results are wrong without it, and right with it",
    "failure": "the script fails without it, and runs with it",
}
STILL_WRONG = "compiled results are as wrong with it as without it"
TOO_NOISY = "too noisy to tell: try it alone, for longer or on a quieter machine"
#: What trials in processes apart do not record.
_OF_ONE_PROCESS = (
    *("compiles", "graphs", "graph_breaks"),
    *("peak_bytes", "baseline_peak_bytes", "outputs_agree"),
)
#: A smaller gain is not worth an edit.
LEAST_GAIN = 0.01
#: Processes of each kind without which there is no verdict.
ENOUGH_TURNS = 3
#: From this number on, the 95 % interval leaves out this many of the ratios at each end.
ENOUGH_FOR_95, MOST_OUT = 5, 2
#: A trial whose peak is higher by more than this part says so.
MORE_MEMORY = 0.1


def judged(
    remedy: Remedy,
    measured: Measured,
    baseline: Baseline = "compiled",
    on_gpu: bool | None = None,
) -> Trial | None:
    """The trial of ``remedy``; None where too few pairs of blocks were measured for a verdict."""
    ended, timed, outputs = measured.ended, measured.ratio, measured.outputs
    interval = timed.interval if timed else None
    verdict: Word
    fixes: Fixes | None = None
    if ended.state in ("failed", "not_applicable"):
        verdict, why = ended.state, ended.why
        if verdict == "failed" and measured.logged.place:
            why = f"{why} ({measured.logged.place})"
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
        if remedy.fixes == "results" and verdict != "changes_results":
            fixes = "results" if outputs.corrected else None
            verdict = "accepted" if fixes else "no_gain"
            why = None if fixes else why or STILL_WRONG
    logged, (cudagraphs, cudagraphs_why) = measured.logged, _cudagraphs(remedy, measured, on_gpu)
    moot = {CUDAGRAPH_MEMORY} if on_gpu is False else set()
    moot |= {AUTOTUNING} if logged.autotune_s == 0 else set()
    price = tuple(each for each in remedy.price if each not in moot)
    peak, before = ended.peak_bytes, ended.baseline_peak_bytes
    if peak is not None and before is not None and peak > (1 + MORE_MEMORY) * before:
        price = (*price, f"memory: a peak of {fmt.size(peak)} instead of {fmt.size(before)}")
    saved, compile_s = timed.base_ms - timed.other_ms if timed else None, ended.compile_s
    pays = baseline == "eager" and verdict == "accepted" and compile_s is not None and saved
    as_often = ended.warm_compiles == ended.compiles
    return _trial(
        remedy,
        verdict=verdict,
        why=why,
        ratio=timed.ratio if timed else None,
        interval=interval,
        pairs=measured.pairs,
        compile_seconds_warm=ended.warm_compile_s if as_often else None,
        autotune_seconds=logged.autotune_s,
        recompiles=logged.recompiles,
        cudagraphs=cudagraphs,
        cudagraphs_why=cudagraphs_why,
        break_even_steps=ceil(compile_s * 1e3 / saved) if pays else None,  # type: ignore[operator]
        max_abs_diff=outputs.max_abs_diff,
        rmse=outputs.rmse,
        eager_rmse=outputs.eager_rmse,
        debug=ended.debug,
        fixes=fixes,
        notes=(*_notes(remedy, measured, on_gpu), *_not_of_a_step(remedy, verdict)),
        clock=measured.clock,
        baseline_ms=timed.base_ms if timed else None,
        trial_ms=timed.other_ms if timed else None,
        measured_ms=saved,
        compile_seconds=compile_s,
        **{name: getattr(ended, name) for name in _OF_ONE_PROCESS[:-1]},
        outputs_agree=outputs.agree,
        price=price,
    )


def _cudagraphs(
    remedy: Remedy, measured: Measured, on_gpu: bool | None
) -> tuple[Cudagraphs | None, str | None]:
    """Whether they were effective, by torch's log, and why not."""
    logged = measured.logged
    if logged.cudagraphs is not None or measured.ratio is None:
        return logged.cudagraphs, logged.cudagraphs_why
    if on_gpu is False:
        return "no", "on a CPU"
    if logged.recompiles is None:
        return None, None
    asked = any(map(_CUDAGRAPHS.match, remedy.settings))
    return "no", "the log mentions none" if asked else None


def _notes(remedy: Remedy, measured: Measured, on_gpu: bool | None) -> Iterator[str]:
    """What a reader of the row should know, and what no one gains by it."""
    ended, logged = measured.ended, measured.logged
    if on_gpu is False and any(map(_CUDAGRAPHS.match, remedy.settings)):
        yield NO_GPU
    timed_none = measured.ratio is not None and logged.autotune_s == 0
    if timed_none and any(map(_AUTOTUNE.match, remedy.settings)):
        yield NO_CPU_TEMPLATE if on_gpu is False else NO_TEMPLATE
    own = any(each.startswith(("eager=", "guards=")) for each in remedy.settings)
    if measured.ratio is not None and ended.compiles == 0 and ended.graphs == 0 and not own:
        yield NOTHING_COMPILED
    if logged.recompiles:
        yield f"{fmt.plural(logged.recompiles, 'recompile')} while it was measured"
    if measured.processes > 1:
        yield f"measured in {measured.processes} processes: the script ends before one has enough"


def _not_of_a_step(remedy: Remedy, verdict: Word) -> Iterator[str]:
    """That it was not expected to make a step faster, where it does not."""
    if remedy.predicted_ms is None and remedy.predicted_s and verdict in ("no_gain", "slower"):
        yield f"what it is to save is compiling, {fmt.seconds(remedy.predicted_s)}, and no step"


def judged_failed(remedy: Remedy, why: str) -> Trial:
    """The trial of a remedy whose process ended without a figure of it."""
    unknown = (
        *("ratio", "interval", "clock", "baseline_ms", "trial_ms", "measured_ms"),
        *("compile_seconds", *_OF_ONE_PROCESS),
    )
    none = dict.fromkeys(unknown)
    return _trial(remedy, verdict="failed", why=why, pairs=0, price=remedy.price, **none)


def judged_apart(
    remedy: Remedy,
    usual: Sequence[Apart],
    changed: Sequence[Apart],
    as_it_is: Apart | None = None,
    *,
    enough: int = ENOUGH_TURNS,
) -> Trial | None:
    """The trial of a remedy that ran in processes of its own, in turns with the script as it is.

    So few are no sample: the interval is from the least to the largest ratio of any two of them. Of
    five and five it is Mann and Whitney's, of 95 %: two on each side are left out.

    ``as_it_is``: a process in which what the remedy is to fix may be seen; ``usual`` are others in
    eager where the script fails. ``enough`` processes of each kind time what fixes something.
    """
    base, other = _timed_alike(usual, changed)
    error = next((each.error for each in changed if each.error and not each.timed), None)
    fixes: Fixes | None = None
    why: str | None = "outputs were not compared: processes apart"
    if as_it_is is not None and changed:
        error = error or next((each.error for each in changed if each.error), None)
        fixes, why = _fixed(remedy, as_it_is, changed)
        fixes = None if error else fixes
    pairs = min(len(base), len(other))
    # What the time limit has ended says nothing of its results.
    settled = error or (as_it_is is not None and any(each.timed for each in changed) and not fixes)
    if refused := next((each.refused for each in changed if each.refused), None):
        error, settled = refused, True
    if pairs < (enough if fixes else ENOUGH_TURNS) and not settled:
        return None
    ratio = median(base) / median(other) if pairs else None
    # As findings put it, where the script's own step was timed.
    steps = [each.step_ms for each in usual if each.step_ms is not None] or base
    before = median(steps) if steps else None
    after = before / ratio if before is not None and ratio else None
    ratios = sorted(one / another for one in base for another in other)
    out = MOST_OUT if pairs >= ENOUGH_FOR_95 else 0
    interval = (ratios[out], ratios[-1 - out]) if pairs else None
    verdict: Word = "not_applicable" if refused else "failed"
    if not error and fixes:
        verdict = "accepted"
    elif not error and (as_it_is is not None or ratio is None or interval is None):
        verdict = "no_gain" if as_it_is is not None else "failed"
    elif not error:
        verdict = _verdict(ratio, interval)  # type: ignore[arg-type]
    in_eager = ("timed against the script in eager",) if remedy.fixes == "failure" and pairs else ()
    seconds = [each.compile_s for each in changed if each.compile_s is not None]
    return _trial(
        remedy,
        verdict=verdict,
        why=error.partition("\n")[0] if error else why,
        fixes=fixes,
        notes=in_eager,
        ratio=ratio,
        interval=interval,
        pairs=pairs,
        apart=True,
        clock=next((each.clock for each in changed if each.clock), None),
        baseline_ms=before,
        trial_ms=after,
        measured_ms=before - after if before is not None and after is not None else None,
        compile_seconds=seconds[0] if seconds else None,
        **dict.fromkeys(_OF_ONE_PROCESS) | {"outputs_agree": True if fixes and not why else None},
        price=remedy.price,
    )


def outside_of_steps(trials: Iterable[Trial], regions: Sequence[Region]) -> Iterator[str]:
    """A note on callables that were not called while a trial was on: it says nothing of them."""
    steps = max((region.calls or 0 for region in regions if region.headline), default=0)
    names = [region.name for region in regions if region.calls and 2 * region.calls < steps]
    if names and any(each.verdict == "accepted" and not each.apart for each in trials):
        be = "is" if len(names) == 1 else "are"
        yield (
            f"{listed(names)} {be} not called in these steps: a setting may fail or act otherwise "
            "there. Run the whole script with it."
        )


def _fixed(
    remedy: Remedy, as_it_is: Apart, changed: Sequence[Apart]
) -> tuple[Fixes | None, str | None]:
    """Whether the script shows what is wrong, and none of it with the remedy; why not, or a doubt.

    What a rule says of the diagnosed run is looked for in a process as long as the remedy's own.
    """
    wrong = frozenset[str]().union(*(each.wrong for each in changed))
    if remedy.fixes == "failure" and not as_it_is.error:
        return None, "the script as it is did not fail in a process as long as the remedy's"
    if remedy.fixes == "results" and not as_it_is.wrong.intersection(remedy.rules):
        return None, f"{', '.join(remedy.rules)}: not seen in a process as long as the remedy's"
    if wrong:
        return None, f"{STILL_WRONG}: {', '.join(sorted(wrong))}"
    if any(each.results for each in changed):
        return remedy.fixes, None
    # Of what only a comparison shows, its absence says nothing.
    known = "acc-unlike-eager" not in as_it_is.wrong
    return remedy.fixes if known else None, "results could not be compared with eager's"


def _timed_alike(
    usual: Sequence[Apart], changed: Sequence[Apart]
) -> tuple[list[float], list[float]]:
    """Milliseconds of both sides' processes, of what is the same on both.

    That is the loop of the script in which both spend their time: of loops within each other the
    innermost one. Where none is known it is a call of the same callable: another one may be called
    more often or less.
    """
    sides = [[each for each in side if each.timed] for side in (usual, changed)]
    loops = [set(each.loops) for side in sides for each in side]
    if all(sides) and (common := set.intersection(*loops)):
        usual_loops = sides[0][0].loops
        spent = {name: prod(usual_loops[name]) for name in common}
        long = [name for name in common if 2 * spent[name] >= max(spent.values())]
        name = max(long, key=lambda name: (usual_loops[name][1], name))
        base, other = ([each.loops[name][0] for each in side] for side in sides)
        return base, other
    if len({each.anchor for side in sides for each in side}) > 1:
        return [], []
    base, other = ([each.step_ms for each in side if each.step_ms] for side in sides)
    return base, other


def _trial(remedy: Remedy, **found: Any) -> Trial:  # noqa: ANN401 (fields of Trial)
    if fixes := found.get("fixes"):
        found["notes"] = (FIXED[fixes], *found["notes"])
    return Trial(
        name=remedy.name,
        rule=next(iter(remedy.rules), None),
        rules=remedy.rules,
        settings=remedy.settings,
        patch=remedy.patch,
        arguments=remedy.arguments,
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
    fail or to differ from eager, in a sentence; None where none of it was tried."""
    rungs = {name: trial for trial in trials for name in trial.settings if len(trial.settings) == 1}
    tried = [(rung, rungs[name]) for rung in STAGES if (name := f"backend={rung}") in rungs]
    for rung, trial in tried:
        if trial.verdict in ("failed", "changes_results"):
            what = "fails" if trial.verdict == "failed" else "differs from eager"
            return (
                f"backend={rung} is the first backend that {what}: the fault is in {STAGES[rung]}"
            )
    if not tried:
        return None
    agree = all(trial.outputs_agree for _, trial in tried)
    names = ", ".join(rung for rung, _ in tried)
    return f"No backend fails{' or differs from eager' if agree else ''}: {names}"


def accepted(trials: Iterable[Trial]) -> list[Trial]:
    """The accepted ones: those that fix what is wrong, and then the fastest, first."""
    found = [trial for trial in trials if trial.verdict == "accepted"]
    return sorted(found, key=lambda trial: (trial.fixes is None, -(trial.ratio or 0.0)))


def by_a_hair(trial: Trial) -> bool:
    """Whether an accepted trial's interval is nearer to 1 than half of its own lower part is wide.

    On a scale of logarithms; a range of processes apart is no interval.
    """
    settled = trial.verdict != "accepted" or trial.apart or trial.fixes
    if settled or not trial.ratio or not trial.interval:
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


# -- what to recommend -----------------------------------------------------------------------------


def recommended(good: Sequence[Trial], whole: Trial | None) -> Recommended | None:
    """The best of ``good``, or all of them where that was measured to be faster, beyond noise."""
    if not good:
        return None
    fastest = good[0]
    if fastest.fixes:  # what leaves results wrong is no alternative
        good = [trial for trial in good if trial.fixes]
        whole = whole if whole is not None and whole.fixes else None
    alike = [trial for trial in good if trial is fastest or not beyond_noise(fastest, trial)]
    best = min(alike, key=lambda trial: bool(trial.price))
    reasons = ["the fastest of those accepted"] if len(good) > 1 else []
    if fastest.fixes:
        reasons = [FIXED[fastest.fixes], *(["the fastest that does"] if len(good) > 1 else [])]
    if best is not fastest:
        other = f"{fastest.name} ({fmt.ratio(fastest.ratio)})"
        reasons[-1:] = [f"as fast as {other} but for noise, without its price"]
    parts: tuple[str, ...] = (best.name,)
    if whole is not None:
        ratio = fmt.ratio(whole.ratio)
        if whole.verdict == "accepted" and beyond_noise(whole, best):
            reasons = [f"together they are faster than the best alone ({fmt.ratio(best.ratio)})"]
            own = set(whole.settings)
            parts = tuple(
                trial.name
                for trial in good
                if own.issuperset(trial.settings) and trial.patch in (None, whole.patch)
            )
            best = whole
        elif whole.verdict in ("failed", "changes_results", "not_applicable"):
            said = whole.verdict.replace("_", " ")
            reasons.append(f"trying {whole.name} together: {said} ({whole.why or 'no reason'})")
        else:
            reasons.append(f"{whole.name} together is no faster beyond noise ({ratio})")
    if best.ratio is None or best.interval is None:
        return None
    return Recommended(
        trials=parts,
        ratio=best.ratio,
        interval=best.interval,
        settings=best.settings,
        code=code_of(best.settings),
        patch=best.patch,
        price=best.price,
        why="; ".join(reasons),
        fixes=best.fixes,
    )


def advised(
    good: Sequence[Trial], best: Recommended, sizes: int | None, launch_bound: bool | None
) -> Iterator[str]:
    """Why this one, after a sweep: next to what, for which shapes, at what price, when it pays.

    ``sizes``: how many sets of sizes the inputs had.
    """
    trial = next(each for each in good if each.name == best.trials[0])
    others = [each for each in good if each is not trial and beyond_noise(trial, each)]
    if others:
        yield f"next comes {others[0].name} ({fmt.ratio(others[0].ratio)})"
    if trial.recompiles is not None and sizes is not None:
        inputs = "the inputs had one size" if sizes == 1 else f"the inputs had {sizes} sizes"
        number = trial.recompiles
        recompiled = f"recompiled {fmt.times(number)}" if number else "never recompiled"
        yield f"{inputs}, and it {recompiled}"
    if trial.cudagraphs == "yes" and launch_bound:
        yield "the steps wait for launches (ap-launch-bound), which cudagraphs save"
    if trial.peak_bytes and trial.baseline_peak_bytes:
        peaks = f"{fmt.size(trial.peak_bytes)}, eager's {fmt.size(trial.baseline_peak_bytes)}"
        yield f"its peak memory is {peaks}"
    if trial.break_even_steps is not None:
        warm = trial.compile_seconds_warm
        known = f" ({fmt.seconds(warm)} with warm caches)" if warm is not None else ""
        compiling = f"{fmt.seconds(trial.compile_seconds)} of compilation{known}"
        yield f"{compiling} pay off after {fmt.plural(trial.break_even_steps, 'step')}"


def everywhere(trials: Sequence[Trial]) -> tuple[Recommended | None, tuple[str, ...]]:
    """What is best over all arguments of the script; and what is best for each, where it differs.

    It gains with one of them at least, and loses with none.
    """
    by_name: dict[str, list[Trial]] = {}
    combinations = dict.fromkeys(trial.arguments for trial in trials)
    running = {trial.arguments for trial in trials if trial.verdict != "failed"}
    for trial in trials:
        if trial.arguments in running:
            by_name.setdefault(trial.name, []).append(trial)
    means = {
        name: exp(fsum(log(each.ratio) for each in own if each.ratio) / len(own))
        for name, own in by_name.items()
        if len(own) == len(running)
        and any(each.verdict == "accepted" for each in own)
        and all(each.verdict in ("accepted", "no_gain") for each in own)
    }
    fastest = max(means, key=lambda name: means[name], default=None)
    # As fast but for noise with each of them: without a price, and the one that was named first.
    alike = [
        name for name in means if not any(map(beyond_noise, by_name[fastest or ""], by_name[name]))
    ]
    best = min(alike, key=lambda name: any(each.price for each in by_name[name]), default=None)
    notes = []
    for arguments in combinations:
        found = recommended(accepted(t for t in trials if t.arguments == arguments), None)
        said = " ".join(arguments)
        if arguments not in running:
            notes.append(f"{said}: every trial failed.")
        elif found is None:
            notes.append(f"{said}: nothing is accepted.")
        elif len(by_name) > 1 and found.trials != (best,):
            notes.append(f"{said}: {found.trials[0]} is best ({fmt.ratio(found.ratio)}).")
    if best is None:
        return None, tuple(notes)
    own = by_name[best]
    ends = [each.interval for each in own if each.interval]
    ratios = sorted(each.ratio for each in own if each.ratio)
    span = f"{fmt.ratio(ratios[0])} to {fmt.ratio(ratios[-1])}"
    whole = Recommended(
        trials=(best,),
        ratio=means[best],
        interval=(min(low for low, _ in ends), max(high for _, high in ends)),
        settings=own[0].settings,
        code=code_of(own[0].settings),
        patch=None,
        price=tuple(dict.fromkeys(price for each in own for price in each.price)),
        why=(
            f"{span} over {fmt.plural(len(own), 'combination')} of arguments; with none of them is "
            "it slower beyond noise"
        ),
    )
    return whole, tuple(notes)

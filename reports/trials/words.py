"""The words, marks and figures that every form of the results record shares."""

from __future__ import annotations

from collections.abc import Iterable

from traceview.reports import words
from traceview.reports.phrases import tiny
from traceview.trials.model import NotTried, Recommended, Results, Trial
from traceview.words import numbers as fmt

#: Verdict: (mark, word). The mark and the word carry the meaning; colour only repeats it.
VERDICTS = {
    "accepted": ("▲", "accepted"),
    "no_gain": ("=", "no gain"),
    "slower": ("▼", "slower"),
    "changes_results": ("!", "changes the results"),
    "failed": ("✕", "failed"),
    "not_applicable": ("–", "not applicable"),
}
#: What a trial is compared with, and what both times of a step are then called.
BASELINES = {"compiled": "the compiled step as it is", "eager": "an eager step"}
TIMES = {"compiled": "Before → after", "eager": "Eager → compiled"}
#: What a recommendation fixes, as a headline begins.
FIXED = {"results": "Compiled results are right with", "failure": "The script runs with"}
_AGREE = {True: "agree", False: "differ", None: "not compared"}


def headline(results: Results) -> str:
    """What came of it, in a sentence."""
    tried = fmt.plural(len(results.trials), "trial")
    best, against = results.recommended, BASELINES[results.baseline]
    if best is not None:
        gain = f"{fmt.ratio(best.ratio)} ({fmt.ratio_interval(best.interval)})"
        rows = [trial for trial in results.trials if trial.ratio and trial.name in best.trials]
        over = len({trial.arguments for trial in rows})
        mean = f" in the mean of {fmt.plural(over, 'combination')} of arguments" if over > 1 else ""
        if best.fixes:
            against = BASELINES["eager" if best.fixes == "failure" else "compiled"]
            return f"{FIXED[best.fixes]} {' + '.join(best.trials)}: {gain} against {against}"
        return f"{gain} against {against}{mean}: {' + '.join(best.trials)}"
    if not results.trials:
        return "Nothing was tried"
    return f"{tried} against {against}, none accepted"


def gain(trial: Trial | Recommended) -> str:
    """``1.43× (1.41–1.45×)``; empty where nothing was timed."""
    if trial.ratio is None:
        return ""
    interval = f" ({fmt.ratio_interval(trial.interval)})" if trial.interval else ""
    return f"{fmt.ratio(trial.ratio)}{interval}"


def timed(trial: Trial) -> str:
    """Both times of a step, and what they rest on."""
    if trial.baseline_ms is None or trial.trial_ms is None:
        return ""
    before, after = fmt.together(trial.baseline_ms, trial.trial_ms)
    pairs = f"medians of {fmt.plural(trial.pairs, 'pair')} of {'runs' if trial.apart else 'blocks'}"
    return f"{before} → {after} per step ({pairs}, {words.clock(trial.clock)})"


def saved(trial: Trial) -> str:
    """What a step saves, measured, next to what a finding expected of it."""
    if trial.measured_ms is None:
        return ""
    measured = f"{fmt.signed(-trial.measured_ms)} measured"
    if trial.predicted_ms is None:
        return measured
    return f"{measured}, {fmt.signed(-trial.predicted_ms)} predicted"


def by_rule(results: Results) -> dict[str, list[str]]:
    """Rule → what came of each remedy that its findings offer, as the report puts it."""
    found: dict[str, list[str]] = {}
    for trial in results.trials:
        measured = gain(trial) if trial.verdict in ("accepted", "slower") else ""
        said = " ".join(filter(None, (VERDICTS[trial.verdict][1], measured)))
        said += {"results": ", results are right", "failure": ", the script runs"}.get(
            trial.fixes or "", ""
        )
        for rule in trial.rules:
            found.setdefault(rule, []).append(f"Tried: {said} (`{trial.name}`)")
    return found


def outputs(trial: Trial) -> str:
    """Whether outputs and gradients agree with eager's."""
    return _AGREE[trial.outputs_agree]


def as_it_is(results: Results) -> str:
    """What the diagnosis measured: ``5.66 ms in eager, 4.82 ms compiled: 1.13× (1.09–1.21×)``."""
    if results.eager_ms is None or results.compiled_ms is None or results.speedup is None:
        return ""
    eager, compiled = fmt.together(results.eager_ms, results.compiled_ms)
    interval = results.speedup_interval
    known = f" ({fmt.ratio_interval(interval)})" if interval else ""
    return f"{eager} in eager, {compiled} compiled: {fmt.ratio(results.speedup)}{known}"


def counts(trial: Trial) -> str:
    """Breaks and recompiles: ``0 breaks, 2 recompiles``; what is not recorded is left out."""
    known = ((trial.graph_breaks, "break"), (trial.recompiles, "recompile"))
    return ", ".join(fmt.plural(number, noun) for number, noun in known if number is not None)


def prices(trial: Trial) -> tuple[str, ...]:
    """What it costs in something other than time, where it ran."""
    return trial.price if trial.ratio is not None else ()


def named(trial: Trial | NotTried) -> str:
    """Its name, with the arguments of the script that it ran with."""
    return " ".join((*trial.arguments, trial.name) if trial.arguments else (trial.name,))


def compiling(trial: Trial) -> str:
    """What compiling took: ``12.3 s of compilation (3.10 s of it autotuning; 0.41 s warm)``."""
    if trial.compile_seconds is None or trial.ratio is None:
        return ""
    tuned, warm = trial.autotune_seconds, trial.compile_seconds_warm
    parts = [f"{fmt.seconds(tuned)} of it autotuning"] if tuned else []
    parts += [f"{fmt.seconds(warm)} with warm caches"] if warm is not None else []
    more = f" ({'; '.join(parts)})" if parts else ""
    return f"{fmt.seconds(trial.compile_seconds)} of compilation{more}"


def cudagraphs(trial: Trial) -> str:
    """``yes``, ``skipped: …``, ``no: on a CPU``; empty where that is not recorded."""
    why = f": {trial.cudagraphs_why}" if trial.cudagraphs_why else ""
    return f"{trial.cudagraphs}{why}" if trial.cudagraphs else ""


def details(trial: Trial) -> str:
    """What else a terminal has room for."""
    parts = [saved(trial), compiling(trial)]
    if trial.break_even_steps is not None:
        parts.append(f"break-even after {fmt.plural(trial.break_even_steps, 'step')}")
    if trial.graph_breaks:
        parts.append(fmt.plural(trial.graph_breaks, "graph break"))
    if trial.cudagraphs in ("yes", "skipped"):
        parts.append(f"cudagraphs {cudagraphs(trial)}")
    if trial.rmse is not None:
        parts.append(f"RMSE {tiny(trial.rmse)}, eager's {tiny(trial.eager_rmse)}")
    if trial.debug:
        parts.append(f"debug folder {trial.debug}")
    if trial.rules:
        parts.append(f"for {', '.join(trial.rules)}")
    return "; ".join(filter(None, parts))


def untried(rows: Iterable[NotTried]) -> list[tuple[str, list[str]]]:
    """(why, the names) of what was not tried, what has the same reason together."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.why, []).append(named(row))
    return list(found.items())

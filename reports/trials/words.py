"""The words, marks and figures that every form of the results record shares."""

from __future__ import annotations

from collections.abc import Iterable

from traceview.reports import words
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
#: What a trial is compared with.
BASELINES = {"compiled": "the compiled step as it is", "eager": "an eager step"}
_AGREE = {True: "agree", False: "differ", None: "not compared"}


def headline(results: Results) -> str:
    """What came of it, in a sentence."""
    tried = fmt.plural(len(results.trials), "trial")
    best, against = results.recommended, BASELINES[results.baseline]
    if best is not None:
        gain = f"{fmt.ratio(best.ratio)} ({fmt.ratio_interval(best.interval)})"
        return f"{gain} against {against}: {' + '.join(best.trials)}"
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
        for rule in trial.rules:
            found.setdefault(rule, []).append(f"Tried: {said} (`{trial.name}`)")
    return found


def outputs(trial: Trial) -> str:
    """Whether outputs and gradients agree with eager's."""
    return _AGREE[trial.outputs_agree]


def details(trial: Trial) -> str:
    """What else a terminal has room for."""
    parts = [saved(trial)]
    if trial.compile_seconds is not None and trial.ratio is not None:
        parts.append(f"{fmt.seconds(trial.compile_seconds)} of compilation")
    if trial.graph_breaks:
        parts.append(fmt.plural(trial.graph_breaks, "graph break"))
    if trial.rules:
        parts.append(f"for {', '.join(trial.rules)}")
    return "; ".join(filter(None, parts))


def untried(rows: Iterable[NotTried]) -> list[tuple[str, list[str]]]:
    """(why, the names) of what was not tried, what has the same reason together."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.why, []).append(row.name)
    return list(found.items())

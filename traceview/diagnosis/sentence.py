"""The verdict in plain words, read in ten seconds: what happened, the figures, the main cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from traceview.derive.causes import UNNAMED
from traceview.diagnosis.explanation import Effect
from traceview.diagnosis.kinds_of_speedup import kinds_of_speedup, largest_loss
from traceview.diagnosis.model import AccountRow, StanceCounts, Verdict
from traceview.rules.finding import Finding
from traceview.words.names import category
from traceview.words.numbers import count, milliseconds, plural, ratio, ratio_interval, together

#: A category that fills this part of both steps leaves torch.compile nothing to win.
DOMINANT = 0.6
#: Fewer kernels by this ratio are named as the reason.
FEWER_KERNELS = 1.3

#: An interval from 0.95 to 1.05 is wide, but still says "about the same"; a wider one does not.
NOISY = 1.1
#: That compiling helped or hurt is sure when the interval says so; by how much, not if it is wide.
VERY_NOISY = 1.5
FEW_BLOCKS = 6
#: Host time outside of every operator: the script's own code, data loading, dispatch.
PYTHON = "python"

Accounting = Mapping[str, Sequence[AccountRow]]
Counts = Mapping[str, StanceCounts]


def sentence(
    verdict: Verdict,
    reason: str | None,
    accounting: Accounting,
    counts: Counts,
    findings: Sequence[Finding],
    effects: Sequence[Effect] = (),
    story: str | None = None,
) -> str:
    """The sentence for ``verdict``; ``findings`` in their final order, ``effects`` all of them.

    ``story``: what a post-mortem says instead of that there is no verdict.
    """
    cause = _first("What costs most", findings)
    if verdict.outcome == "failed":
        errors = [found for found in findings if found.severity == "error"]
        why = _first("The cause", errors)
        return _join(f"{_upper(reason or 'the script failed')}.", why, _until_then(verdict))
    if verdict.outcome == "not_compiled":
        others = [found for found in findings if found.rule != "cap-nothing-compiled"]
        used = "gained nothing" if any(_costs_a_step(f) for f in others) else "had no effect"
        used = used if findings else "was not used"
        return _join(f"torch.compile {used}: {reason}.", _first("The reason", others))
    if verdict.outcome == "not_measured":
        told = story or f"No verdict: {reason or 'no step was timed'}."
        return _join(told, _one_sided(verdict), _first("First finding", findings))
    if verdict.outcome == "helped":
        opening = f"torch.compile helped: a step takes {_instead(verdict)} ({_support(verdict)})."
        why = kinds_of_speedup(effects) or _saving(accounting, counts)
        left = _first("What still costs most", findings)
        return _join(opening, _noise(verdict, VERY_NOISY), why, left)
    if verdict.outcome == "hurt":
        why = cause or kinds_of_speedup(effects) or largest_loss(effects) or _growth(accounting)
        step = f"a step takes {_instead(verdict)} ({_support(verdict)})."
        opening = f"torch.compile hurt: {f'{reason}, and ' if reason else ''}{step}"
        return _join(opening, _noise(verdict, VERY_NOISY), why)
    same = _dominant(accounting)
    return _join(_neutral(verdict, same), _noise(verdict, NOISY), cause)


def _costs_a_step(finding: Finding) -> bool:
    """Whether a step was seen to pay for it: no effect is something else."""
    return finding.confidence == "measured" and bool(finding.cost.ms_per_step)


def _neutral(verdict: Verdict, same: tuple[str, float] | None) -> str:
    figures = f"a step takes {_instead(verdict)} ({_support(verdict)})."
    if same is None:
        return f"{_no_difference(verdict)}: {figures}"
    name, part = same
    both = f"{part:.0%} of the step is {category(name)} in both".replace("%", " %")
    return f"{_no_difference(verdict)}: {both}; {figures}"


def _no_difference(verdict: Verdict) -> str:
    """What a neutral interval allows to be said: it may lie to one side of 1."""
    low, high = verdict.speedup_interval or (1.0, 1.0)
    if low <= 1.0 <= high:
        return "torch.compile made no measurable difference"
    if high / low < NOISY and max(high, 1 / low) < NOISY:
        return "torch.compile made next to no difference"
    return f"torch.compile may have {'helped' if low > 1.0 else 'hurt'}, which is not certain"


def _noise(verdict: Verdict, most: float) -> str:
    low, high = verdict.speedup_interval or (1.0, 1.0)
    if high <= most * low:
        return ""
    blocks = "few blocks, which" if verdict.blocks < FEW_BLOCKS else "the blocks"
    return f"That is noisy ({blocks} differ widely): a longer run on a quiet machine would tell."


def _instead(verdict: Verdict) -> str:
    compiled, eager = together(verdict.compiled_ms or 0.0, verdict.eager_ms or 0.0)
    return f"{compiled} instead of {eager}"


def _support(verdict: Verdict) -> str:
    """6.9×, 95 % interval 6.7–7.0, device time, 12 block pairs."""
    parts = [f"{ratio(verdict.speedup)}"]
    if verdict.speedup_interval is not None:
        parts.append(f"95 % interval {ratio_interval(verdict.speedup_interval)}")
    parts.append("device time" if verdict.clock == "device" else "host time")
    if verdict.basis == "two_runs":
        parts.append(f"two runs, {plural(verdict.steps_timed, 'step')}")
    else:
        parts.append(plural(verdict.blocks, "block pair"))
    return ", ".join(parts)


def _until_then(verdict: Verdict) -> str:
    """The figures measured before the end, if there are both."""
    if verdict.speedup is None:
        return ""
    return f"Measured until then: a step takes {_instead(verdict)} ({_support(verdict)})."


def _one_sided(verdict: Verdict) -> str:
    if verdict.speedup is not None:
        return f"What there is: a step takes {_instead(verdict)} ({_support(verdict)})."
    known = [
        f"{name} {milliseconds(ms)}"
        for name, ms in (("eager", verdict.eager_ms), ("compiled", verdict.compiled_ms))
        if ms is not None
    ]
    steps = plural(verdict.steps_timed, "step")
    return f"A step takes {', '.join(known)} (host time, {steps})." if known else ""


def _saving(accounting: Accounting, counts: Counts) -> str:
    """Fewer kernels, else the category that shrank most."""
    eager, compiled = counts.get("eager"), counts.get("compiled")
    before, after = (side.kernels if side else None for side in (eager, compiled))
    if before and after and before >= FEWER_KERNELS * after:
        noun = "operators" if eager and eager.launches is None else "kernels"  # on a CPU
        return f"The main reason: {count(before)} {noun} became {count(after)}."
    name, change = _largest(accounting, sign=-1)
    return _change(name, -change, "less")


def _growth(accounting: Accounting) -> str:
    name, change = _largest(accounting, sign=1)
    return _change(name, change, "more")


def _change(name: str | None, ms: float, word: str) -> str:
    return (
        f"The main reason: {milliseconds(ms)} {word} per step for {category(name)}." if name else ""
    )


def _largest(accounting: Accounting, sign: int) -> tuple[str | None, float]:
    """The category whose ms per step changed most in the direction of ``sign``."""
    eager, compiled = _by_category(accounting, "eager"), _by_category(accounting, "compiled")
    if not eager or not compiled:
        return None, 0.0
    change = {name: compiled.get(name, 0.0) - eager.get(name, 0.0) for name in eager | compiled}
    name = max(change, key=lambda key: sign * change[key])
    return (name, change[name]) if sign * change[name] > 0 else (None, 0.0)


def _dominant(accounting: Accounting) -> tuple[str, float] | None:
    """(category, part) of the work, or of Python between it, that fills most of both steps.

    None where the profile found more of it than the timed step is long.
    """
    parts: dict[str, list[float]] = {}
    for stance in ("eager", "compiled"):
        rows = accounting.get(stance, ())
        total = sum(row.ms for row in rows)
        for row in rows:
            if (row.kind == "busy" or row.category == PYTHON) and total > 0:
                parts.setdefault(row.category, []).append(row.ms / total)
    both = {name: min(found) for name, found in parts.items() if len(found) == 2}
    name = max(both, key=lambda key: both[key], default=None)
    return (name, both[name]) if name is not None and DOMINANT <= both[name] <= 1 else None


def _by_category(accounting: Accounting, stance: str) -> dict[str, float]:
    rows = accounting.get(stance, ())
    return {row.category: row.ms for row in rows if row.kind not in UNNAMED}


def _first(opening: str, findings: Sequence[Finding]) -> str:
    """The first cause that is more than information or weighs like one, as the reports list them.

    What is wrong with the measurement or the script's own timer (TV9xx) slows no step down. A
    result that is wrong (TV7xx) costs nothing either, and weighs more.
    """
    causes = (f for f in findings if f.severity != "info" or f.weighs)
    serious = [f for f in causes if not f.code.startswith("TV9")]
    wrong = [f for f in serious if f.code.startswith("TV7")]
    first = next(iter((*wrong, *serious)), None)
    opening = "What matters more" if wrong else opening
    return f"{opening}: {first.title.rstrip('.')}." if first else ""


def _join(*sentences: str) -> str:
    return " ".join(text for text in sentences if text)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]

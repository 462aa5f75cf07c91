"""
## What it finds
A compiled callable that gives other results than eager only because it draws other random numbers:
dropout, `torch.rand`, noise.

## Why it costs
No time, and nothing is wrong: Inductor draws random numbers in generated code of its own, from the
same seed but in another order. A comparison of losses or outputs with eager then shows a
difference that means nothing, and a real mistake hides behind it.

## Evidence
A trial (`--compare-outputs`): eager draws random numbers in the call; compiled outputs differ from
eager's from the same seed, and agree once Inductor falls back to eager's generators
(`fallback_random`).

## What to do
To compare, set `torch._inductor.config.fallback_random = True`, or use `.eval()` or p=0. Not for
work: it takes random operators out of fusion.

## References
- https://docs.pytorch.org/docs/stable/notes/randomness.html
- torch/_inductor/config.py, `fallback_random`
- torch/_inductor/fx_passes/replace_random.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _accuracy, _places
from traceview.rules._accuracy import Trial
from traceview.rules.finding import Evidence, Finding, Snippet
from traceview.tables import Tables

CODE = "TV702"
NEEDS = frozenset({"output_trials", "output_checks"})


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding a callable."""
    for trial in _accuracy.trials(tables):
        unlike = [row for row in trial.of("compiled") if not row["same"]]
        if trial.told["draws_random"] and unlike and _agrees(trial):
            yield _finding(trial, _accuracy.told(_accuracy.worst(unlike)))


def _agrees(trial: Trial) -> bool:
    """Whether compiled agrees with eager once it draws the same numbers."""
    found = trial.of("fallback_random")
    return bool(found) and all(row["same"] for row in found)


def _finding(trial: Trial, unlike: str) -> Finding:
    return Finding(
        code=CODE,
        rule="acc-rng",
        severity="info",
        title=f"Compiled {trial.name} draws other random numbers than eager; else they agree",
        explanation=(
            "Inductor draws random numbers in generated code of its own, so that the same seed "
            "gives other numbers than in eager. With eager's own generators the outputs agree: "
            "nothing is wrong."
        ),
        cost=_accuracy.RESULT,
        confidence="measured",
        location=trial.place,
        evidence=(
            Evidence(f"from the same seed, compiled: {unlike}", "output_checks"),
            Evidence("with fallback_random: every output agrees with eager's", "output_checks"),
        ),
        what_to_do=(
            "For a comparison with eager let Inductor use eager's generators (fallback_random), or "
            "compare in eval mode. Leave it off for work: random operators are not fused with it."
        ),
        snippet=Snippet("python", "torch._inductor.config.fallback_random = True"),
        about=_places.about_region(trial.region),
    )

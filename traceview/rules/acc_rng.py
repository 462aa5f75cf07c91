"""
## What it finds
A compiled callable that gives other results than eager only because it draws other random numbers:
dropout, `torch.rand`, noise.

## Why it costs
No time, and nothing is wrong: Inductor draws random numbers in generated code of its own, from the
same seed but in another order. A comparison of losses or outputs with eager then shows a
difference that means nothing, and a real mistake can hide behind it.

## Evidence
A trial (`--compare-outputs`): eager draws random numbers in the call; compiled outputs differ from
eager's from the same seed, and agree once Inductor falls back to eager's generators
(`fallback_random`).

## What to do
To compare, set `torch._inductor.config.fallback_random = True`, or use `.eval()` or p=0. Leave it
off otherwise: random operators are not fused with it.

## References
- https://docs.pytorch.org/docs/stable/notes/randomness.html
- torch/_inductor/config.py, `fallback_random`
- torch/_inductor/fx_passes/replace_random.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._accuracy import RESULT, compared, described, worst
from traceview.rules.kit import Evidence, Finding, Snippet, Tables, about_region

CODE = "TV702"
NEEDS = frozenset({"output_verdicts", "output_checks"})
SEVERITIES = ("info",)


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding for each callable."""
    for found in compared(tables):
        unlike = [row for row in found.of("compiled") if not row["same"]]
        random = found.verdict["judged_run"] == "fallback_random"
        if not (unlike and random and found.verdict["outcome"] == "random"):
            continue
        text = f"from the same seed, compiled: {described(worst(unlike))}"
        yield Finding(
            code=CODE,
            rule="acc-rng",
            severity="info",
            title=f"Compiled {found.name} differs from eager only by its random numbers",
            explanation=(
                "Inductor draws random numbers in generated code of its own, so the same seed "
                "gives other numbers than in eager. With eager's own generators the outputs agree: "
                "nothing is wrong."
            ),
            cost=RESULT,
            confidence="measured",
            location=found.place,
            evidence=(
                Evidence(text, "output_checks"),
                Evidence("with fallback_random: every output agrees with eager's", "output_checks"),
            ),
            what_to_do=(
                "For a comparison with eager, let Inductor use eager's generators "
                "(fallback_random), or compare in eval mode. Leave it off otherwise: random "
                "operators are not fused with it."
            ),
            snippet=Snippet("python", "torch._inductor.config.fallback_random = True"),
            about=about_region(found.region),
        )

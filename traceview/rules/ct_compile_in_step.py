"""
## What it finds
A line that calls `torch.compile` in every step, or more often, for the same function.

## Why it costs
`torch.compile` compiles nothing yet: it makes a callable, whose first call compiles. Making one
takes 0.1 ms or more (its options are checked, the function is wrapped). Compiled code belongs to
the function's code object, so it is found again and nothing is compiled twice, which is why this
stays unnoticed.

## Evidence
The calls of `torch.compile` that each line made, their host time, and the steps of the run.

## What to do
Call it once and keep what it returns: at the top of the file, as a decorator, or in `__init__`.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that these calls must take.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- https://docs.pytorch.org/docs/stable/torch.compiler_api.html
- torch/__init__.py, `compile`
- torch/_dynamo/eval_frame.py, `_TorchDynamoContext`
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    about_calls,
    first,
    first_rank,
    milliseconds,
    percent,
    rows,
    severity,
    short,
    step_ms,
)

CODE = "TV609"
NEEDS = frozenset({"regions", "runs", "step_counts"})
SEVERITIES = ("warning", "info")

#: Less of a step is hard to tell from noise.
LEAST_SHARE = 0.02
#: Fewer calls may be what makes the models before the first step.
_FEWEST_CALLS = 16


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding for each such line."""
    run, step = first(tables, "runs"), step_ms(tables, "compiled")
    if run is None or not run["steps_seen"] or not step:
        return
    lines: dict[tuple[str, int], list[Row]] = {}
    steps = run["steps_seen"]
    for row in first_rank(rows(tables, "regions")):
        if row["is_anchor"] and row["calls"]:
            steps = row["calls"]  # of the callables before it, none lasted
        if row["call_file"] and row["call_line"] and row["compile_calls_ms"] is not None:
            lines.setdefault((row["call_file"], row["call_line"]), []).append(row)
    for (file, line), every in lines.items():
        # Many calls share a callable's row when there have been some: then those are the usual.
        made = [row for row in every if (row["compile_calls"] or 1) > 1] or every
        calls = sum(row["compile_calls"] or 1 for row in made)
        often = calls / steps
        ms = often * _each_ms(made)
        names = list(dict.fromkeys(row["name"] for row in made))
        name = names[0] if len(names) == 1 else "…"
        if calls < _FEWEST_CALLS or often < 1 or ms < least_share * step:
            continue
        place = Location(file, line, made[0]["call_function"])
        same = "the same function" if len(names) == 1 else f"one of {len(names)} functions"
        times = f"{often:.0f} times in every step" if often >= 1.5 else "in every step"
        yield Finding(
            code=CODE,
            rule="ct-compile-in-step",
            severity=severity(tables, ms),
            title=(
                f"torch.compile({name}) at {short(place)} is called {times}: "
                f"{milliseconds(ms)}, {percent(min(1.0, ms / step))} of the step"
            ),
            explanation=(
                f"Each call makes a new callable of {same}. They share its compiled "
                "code, so nothing is compiled again, but making one takes time on the host."
            ),
            cost=Cost(ms, None, "host time of these calls alone, as measured"),
            confidence="measured",
            location=place,
            about=about_calls(tables, made[-1]),
            evidence=(
                Evidence(
                    f"{calls:,} calls of torch.compile in {steps:,} steps, "
                    f"{milliseconds(_each_ms(made))} each",
                    "regions",
                ),
            ),
            what_to_do="Call torch.compile once, and keep what it returns.",
            snippet=Snippet(
                "python", f"compiled = torch.compile({name})  # once, before the first step"
            ),
            weighs=True,
        )


def _each_ms(made: list[Row]) -> float:
    """Host time of one call; of the first, which imports, in nothing but the median."""
    if (made[0]["compile_calls"] or 1) > 1:
        spent, calls = (sum(r[key] for r in made) for key in ("compile_calls_ms", "compile_calls"))
        return float(spent / calls)
    return float(median(row["compile_calls_ms"] for row in made))

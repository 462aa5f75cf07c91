"""
## What it finds
A function with `functools.lru_cache` or `functools.cache` that compiled code calls.

## Why it costs
In eager the function runs once for each combination of arguments. Dynamo ignores the cache and
traces the function's body, so its operations are a part of the graph, and every call of the
compiled code computes them again.

## Evidence
Dynamo's warning, with the line of the call, and the function of that name in the user's sources.
The cost is measured: the generated kernels with lines of that function, which may compute more
besides, where eager runs nothing of it in the profiled steps. Information where that is not known.

## What to do
Call the function outside of compiled code and pass the result, or keep it as a buffer of the
module.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/_dynamo/variables/functions.py, `WrapperUserFunctionVariable`
- https://github.com/pytorch/pytorch/issues/93552
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import location
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    about,
    first_rank,
    from_row,
    line_of,
    milliseconds,
    percent,
    rows,
    severity,
    short,
    step_ms,
)

CODE = "TV131"
NEEDS = frozenset({"cached_calls"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion", "other_kernels"})


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each call."""
    done: set[Location] = set()
    for row in first_rank(rows(tables, "cached_calls")):
        place = Location(row["file"], row["line"])
        if place not in done:
            done.add(place)
            yield _finding(tables, row, place)


def _finding(tables: Tables, row: Row, place: Location) -> Finding:
    matched = first_rank(rows(tables, "matched_kernels"))
    mine = [each for each in matched if _within(row, line_of(each))]
    kernels = []
    if all(each["stance"] == "compiled" for each in mine):  # eager steps ran no operator of it
        kernels = [
            each for each in mine if each["ms"] and not each["category"].startswith("generated")
        ]
        kernels += [
            kernel
            for kernel in first_rank(rows(tables, "kernel_groups", stance="compiled"))
            if kernel["ms"] and any(_within(row, location(at)) for at in kernel["user_lines"] or ())
        ]
    kernels.sort(key=lambda kernel: -kernel["ms"])
    ms = sum(kernel["ms"] for kernel in kernels) or None
    ids = {kernel["compile_id"] for kernel in kernels}
    compiles = (one for one in rows(tables, "compiles") if one["compile_id"] in ids)
    name = f"{row['function']}()" if row["function"] else "A function with functools.lru_cache"
    step = step_ms(tables, "compiled")
    much = f", {milliseconds(ms)} that eager does not spend" if ms else ""
    share = f" ({percent(min(1.0, ms / step))} of the step)" if ms and step else ""
    return Finding(
        code=CODE,
        rule="cap-cached-function",
        severity=severity(tables, ms) if ms else "info",
        title=(
            f"{name} at {short(place)} is computed in every call{much}{share}: "
            "compiled code ignores its cache"
        ),
        explanation=(
            "Dynamo traces the body of a function with functools.lru_cache. Compiled code computes "
            "it each time, where eager takes the result of an earlier call."
        ),
        cost=Cost(ms, None, "kernels with its lines, at most") if ms else Cost(),
        confidence="derived",
        location=place,
        about=about(*compiles),
        evidence=(
            from_row("Dynamo warned about this call", "cached_calls", row),
            *(
                Evidence(
                    f"{kernel['name']}: {milliseconds(kernel['ms'])} of a step, with lines of it",
                    "kernel_groups" if "user_lines" in kernel else "matched_kernels",
                )
                for kernel in kernels[:1]
            ),
        ),
        what_to_do=(
            "Call it outside of compiled code and pass the result as an argument, or keep the "
            "result as a buffer of the module."
        ),
        snippet=Snippet(
            "python",
            f"known = {row['function'] or 'cached'}(…)  # before the compiled call\n"
            "y = compiled(x, known)",
        ),
    )


def _within(row: Row, place: Location | None) -> bool:
    """Whether a line is one of the function with the cache."""
    return (
        place is not None
        and row["function"] is not None
        and place.file == row["in_file"]
        and place.line is not None
        and row["first_line"] <= place.line <= row["last_line"]
    )

"""
## What it finds
Copies (copy.deepcopy, pickle) of a module that was compiled in place, by `module.compile()`, and
that are called: a copy is not compiled.

## Why it costs
`module.compile()` stores the compiled call in the module, and leaves it out of what is copied. The
copy works as before and runs in eager.

## Evidence
The calls of each copy were counted (those from within other compiled code are not, as they are
compiled with it). They come in place of calls of the compiled module, or with at least every
second one.

## What to do
Copy the module first, and compile the copies: `copy.deepcopy(model)`, then `.compile()`. Copies of
one class share compiled code. A copy that is called now and then, such as averaged weights in
evaluation, needs no compiling.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.compile
- torch/nn/modules/module.py, `Module.__getstate__`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.outcome import calls_copies
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    compile_call,
    first_rank,
    line_of,
    milliseconds,
    rows,
    severity,
    short,
    times,
)
from traceview.tables import grouped

CODE = "TV123"
NEEDS = frozenset({"module_copies"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"compile", "idle_compile"})


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each line that copies."""
    regions = {row["region_id"]: row for row in first_rank(rows(tables, "regions"))}
    called = [row for row in first_rank(rows(tables, "module_copies")) if calls_copies(row)]
    for found in grouped(called, "file", "line").values():
        region = regions.get(found[0]["region_id"])
        copies, calls = (sum(row[name] for row in found) for name in ("copies", "calls"))
        after = sum(row["region_calls_after"] for row in found)
        spent = [row["calls"] * row["call_ms"] for row in found if row["call_ms"] is not None]
        ms = sum(spent) / after if after and spent else None
        row, made = found[0], compile_call(region)
        place = line_of(row)
        module, many = row["module"], copies > 1
        which = f"{copies} copies of {module}" if many else f"A copy of {module}"
        at = f" ({short(place)})" if place else ""
        each = f", {milliseconds(sum(spent) / calls)} of host time each" if spent else ""
        yield Finding(
            code=CODE,
            rule="cap-copy-in-eager",
            severity=severity(tables, ms) if after else "warning",
            title=f"{which}{at}, called {times(calls)}, {'are' if many else 'is'} not compiled",
            explanation=(
                f"{module} was compiled in place, by compile(). The compiled call is no part of "
                f"what {row['how']} copies, so a copy runs in eager."
            ),
            cost=Cost(ms, None, "time of their calls in eager; compiling saves a part of it"),
            confidence="measured",
            location=place or made,
            also_at=(made,) if made and place else (),
            evidence=(
                Evidence(f"calls of copies counted: {calls:,}{each}", "module_copies"),
                Evidence(
                    f"the compiled module is called {times(after)} after that", "module_copies"
                ),
            ),
            what_to_do="Copy the module first, and compile the copies.",
            snippet=Snippet("python", "member = copy.deepcopy(model)\nmember.compile()"),
        )

"""
## What it finds
A compiled function that returns many views, which every call makes again.

## Why it costs
A compiled graph gives out no view of its inputs. AOTAutograd makes each one again from its base, in
Python and by the operators that made it. A result of `unbind` or `split` takes all the others with
it: 100 of them take 10,000 operators. Eager makes all of them at once.

## Evidence
Operators that make views, in the profile of compiled calls after their graph. The time from the
graph's end to the call's, less what the profiler's events cost. Dynamo's graph has the number of
views and their line. Calls with a graph break in them are left out.

## What to do
Take the views outside of compiled code: return the tensor that they are views of. What computes
nothing else need not be compiled. Or stack them: a new tensor is no view.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that making them again must take.

## References
- torch/_functorch/_aot_autograd/runtime_wrappers.py
- https://docs.pytorch.org/docs/stable/tensor_view.html
- https://dev-discuss.pytorch.org/t/functionalization-in-pytorch-everything-you-wanted-to-know/965
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import idle_ms, location
from traceview.rules._starts import of_keys
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Tables,
    about,
    compile_call,
    first_rank,
    is_timed,
    milliseconds,
    percent,
    plural,
    region_of,
    rows,
    severity_of_loss,
    short,
    step_ms,
)

CODE = "TV302"
NEEDS = frozenset({"output_views", "accounting", "speedups"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"overheads_added", "launches_saved"})

#: Less of a step is not worth a change of the code.
LEAST_SHARE = 0.10


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding for each compiled graph, the slowest first."""
    compiled, waits = step_ms(tables, "compiled"), idle_ms(tables)
    if not compiled or not is_timed(tables):
        return
    for row in sorted(first_rank(rows(tables, "output_views")), key=lambda row: -row["ms"]):
        # What a device does not wait for costs nothing.
        ms = row["ms"] if waits is None else min(row["ms"], waits)
        if ms < least_share * compiled:
            continue
        region = region_of(tables, row["compile_key"])
        name = region["name"].rpartition("<locals>.")[2] if region and region["name"] else None
        place = location(row["user_line"] or "")
        made = compile_call(region) if region else None
        views = f"{row['views']:,} views" if row["views"] > 1 else "view"
        alone = name is not None and not row["computes"]
        yield Finding(
            code=CODE,
            rule="ap-output-views",
            severity=severity_of_loss(tables, ms),
            title=(
                f"Every call of {name or 'a compiled function'} makes the {views} that it returns "
                f"again{f' ({short(place)})' if place else ''}: {milliseconds(ms)}, "
                f"{percent(ms / compiled)} of the step"
            ),
            explanation=(
                "A compiled graph gives out no view of its inputs. After it AOTAutograd makes each "
                "view again in Python, by the operators that made it. One result of unbind or "
                "split takes all of them."
            ),
            cost=Cost(ms, None, "compiled calls after their graph, less the profiler's events"),
            confidence="derived",
            location=place or made,
            also_at=(made,) if place and made else (),
            about=about(*of_keys(tables, {row["compile_key"]})),
            evidence=(
                Evidence(
                    f"{row['compile_id']}: {row['views']:,} of {plural(row['outputs'], 'output')} "
                    f"are views; a call runs {row['operators']:,.0f} operators for them after the "
                    f"graph, {milliseconds(row['us_per_call'] / 1e3)}",
                    "output_views",
                ),
            ),
            what_to_do=(
                f"Leave {name} out of compiled code: it makes views and computes nothing."
                if alone
                else "Return the tensor that they are views of, and take the views outside of "
                "compiled code."
            ),
            remedy=(f"eager={name}",) if alone else (),
        )

"""
## What it finds
`torch.compile` with a backend that generates no code: `eager`, `aot_eager` and their relatives,
or a callable of the script's own that only looks at the graph.

## Why it costs
Tracing, guards and wrappers are paid for, and the graph then runs one operator after the other,
as eager does: nothing is fused.

## Evidence
The `backend=` of the torch.compile call, graphs captured by Dynamo, and no generated code in the
structured log. A callable that passes the graph on to Inductor leaves code and is not reported.

## What to do
Remove `backend=`; Inductor is the default. Keep the debugging backends for finding which stage
changes a result.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- https://docs.pytorch.org/docs/stable/torch.compiler_custom_backends.html
- torch/_dynamo/backends/debugging.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.callables import DEBUG_BACKENDS
from traceview.rules import _edits
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Tables,
    about_calls,
    compile_call,
    first_rank,
    milliseconds,
    plural,
    rows,
    step_ms,
)

CODE = "TV111"
NEEDS = frozenset({"regions", "graphs"})
SEVERITIES = ("warning",)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per torch.compile call whose backend generates nothing."""
    captured, generated = (
        len(rows(tables, "graphs", kind=kind)) for kind in ("dynamo_output", "output_code")
    )
    # What the compiled stance is slower by; what Inductor would save is not known.
    eager, compiled = (step_ms(tables, stance) for stance in ("eager", "compiled"))
    cost = Cost(about="what Inductor would save; not measured")
    if eager is not None and compiled is not None and compiled > eager:
        slower = f"compiled {milliseconds(compiled)}, eager {milliseconds(eager)}"
        cost = Cost(compiled - eager, None, f"{slower}; what Inductor would save is not included")

    regions = first_rank(rows(tables, "regions"))
    # A line that was called with Inductor, too, compares backends.
    compared = {
        (region["call_file"], region["call_line"])
        for region in regions
        if region["calls"] and region["backend"] == "inductor"
    }
    for region in regions:
        if (region["call_file"], region["call_line"]) in compared:
            continue
        known = region["backend"] in DEBUG_BACKENDS
        own = bool(region["backend_is_callable"]) and captured > 0 and not generated
        if not region["calls"] or region["disable"] or not (known or own):
            continue
        place = compile_call(region)
        shown = "a callable of your own" if own else f'"{region["backend"]}"'
        call = f"torch.compile({region['name']}, backend={region['backend']})"
        turned = f"{generated} turned into code" if generated else "none turned into code"
        yield Finding(
            code=CODE,
            rule="cap-debug-backend",
            severity="warning",
            title=f"backend={shown} generates no code",
            explanation=(
                "Dynamo captures the graph and guards it, and the backend then runs its operators "
                "one after the other, as eager does. Nothing can make it faster than eager."
            ),
            cost=cost,
            confidence="derived",
            location=place,
            about=about_calls(tables, region),
            evidence=(
                Evidence(call, "regions"),
                Evidence(f"{plural(captured, 'graph')} captured, {turned}", "graphs"),
            ),
            what_to_do="Remove backend=: Inductor is the default.",
            snippet=_edits.without(_edits.source_line(tables, place), "backend"),
            remedy=("backend=inductor",),
        )

"""
## What it finds
`torch.compile` with a backend that generates no code: `eager`, `aot_eager` and their relatives,
or a callable of one's own that only looks at the graph.

## Why it costs
Tracing, guards and wrappers are paid for, and the graph then runs one operator after the other,
as eager does: nothing is fused.

## Evidence
The `backend=` of the torch.compile call, graphs captured by Dynamo, and no generated code in the
structured log. A callable that hands the graph on to Inductor leaves code and is not named.

## What to do
Leave `backend=` out; Inductor is the default. Keep the debugging backends for finding which stage
breaks a result.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- https://docs.pytorch.org/docs/stable/torch.compiler_custom_backends.html
- torch/_dynamo/backends/debugging.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _costs, _edits, _places
from traceview.rules._rows import first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, plural

CODE = "TV111"
NEEDS = frozenset({"regions", "graphs"})

#: torch/_dynamo/backends/debugging.py: they run the graph as it is, or through AOTAutograd only.
DEBUG_BACKENDS = frozenset(
    {
        "eager", "eager_noexcept", "eager_debug", "pre_dispatch_eager", "aot_eager",
        "aot_eager_default_partitioner", "aot_eager_decomp_partition",
        "aot_eager_decomp_partition_with_mode", "invoke_subgraph",
    }
)  # fmt: skip


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a torch.compile call whose backend generates nothing."""
    kinds = [row["kind"] for row in rows(tables, "graphs")]
    captured = kinds.count("dynamo_output")
    generated = kinds.count("output_code")
    for region in first_rank(rows(tables, "regions")):
        known = region["backend"] in DEBUG_BACKENDS
        own = bool(region["backend_is_callable"]) and captured > 0 and not generated
        if not region["calls"] or region["disable"] or not (known or own):
            continue
        place = _places.compile_call(region)
        yield Finding(
            code=CODE,
            rule="cap-debug-backend",
            severity="warning",
            title=f"backend={_shown(region['backend'], own)} generates no code",
            explanation=(
                "Dynamo captures the graph and guards it, and the backend then runs its operators "
                "one by one, as eager would. There is nothing that could make it faster."
            ),
            cost=_cost(tables),
            confidence="derived",
            location=place,
            about=_places.about_calls(tables, region),
            evidence=(
                Evidence(
                    f"torch.compile({region['name']}, backend={region['backend']})", "regions"
                ),
                Evidence(
                    f"{plural(captured, 'graph')} captured, none turned into code"
                    if not generated
                    else f"{plural(captured, 'graph')} captured, {generated} turned into code",
                    "graphs",
                ),
            ),
            what_to_do="Leave backend= out: Inductor is the default.",
            snippet=_edits.without(_edits.source_line(tables, place), "backend"),
        )


def _shown(backend: str, own: bool) -> str:
    return "a callable of your own" if own else f'"{backend}"'


def _cost(tables: Tables) -> Cost:
    """What the compiled stance is slower by; what Inductor would save is not known."""
    eager, compiled = (_costs.step_ms(tables, stance) for stance in ("eager", "compiled"))
    if eager is None or compiled is None or compiled <= eager:
        return Cost(about="what Inductor would save; not measured")
    about = (
        f"compiled {milliseconds(compiled)} against eager {milliseconds(eager)}; what Inductor "
        "would save comes on top"
    )
    return Cost(ms_per_step=compiled - eager, about=about)

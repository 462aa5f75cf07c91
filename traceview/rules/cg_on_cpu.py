"""
## What it finds
`mode="reduce-overhead"`, or the option `triton.cudagraphs`, for code that runs on a CPU.

## Why it costs
Nothing is gained: cudagraphs record work of a GPU. On a CPU torch compiles the code as with the
default mode, and nothing says so.

## Evidence
The mode or option that torch.compile was given, calls of what it gave back, and steps that ran on a
CPU.

## What to do
Leave the mode out here. What a small step on a CPU can lose are guards and calls: compile a larger
function, or call it less often with larger batches. `mode="max-autotune"` does have an effect on a
CPU.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_utils.py, `check_multiple_devices_or_any_cpu_nodes`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _edits
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Tables,
    about_region,
    compile_call,
    first_rank,
    rows,
    times,
)

CODE = "TV514"
NEEDS = frozenset({"regions", "runs"})
SEVERITIES = ("info",)
IS_CAUSE = False

_MODE = 'mode="reduce-overhead"'


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each torch.compile call."""
    if {row["device_name"] for row in rows(tables, "runs")} != {"cpu"}:
        return
    for region in first_rank(rows(tables, "regions")):
        option = '"triton.cudagraphs": true' in (region["options"] or "")
        if not region["calls"] or not (option or region["mode"] == "reduce-overhead"):
            continue
        place = compile_call(region)
        asked = 'options={"triton.cudagraphs": True}' if option else _MODE
        yield Finding(
            code=CODE,
            rule="cg-on-cpu",
            severity="info",
            title=f"{asked} has no effect on a CPU: cudagraphs record work of a GPU",
            explanation=(
                "The steps ran on a CPU. There torch compiles the code as without this, and no "
                "launch is saved."
            ),
            cost=Cost(about="nothing; it gains nothing either"),
            confidence="measured",
            location=place,
            evidence=(
                Evidence(f"{asked}, called {times(region['calls'])}", "regions"),
                Evidence("the steps ran on a CPU", "runs"),
            ),
            what_to_do=(
                "Leave it out on a CPU. To save time per call here, compile a larger function or "
                "use larger batches."
            ),
            snippet=None if option else _edits.without(_edits.source_line(tables, place), "mode"),
            remedy=("options.triton.cudagraphs=False",) if option else ("mode=None",),
            about=about_region(region),
        )

"""
## What it finds
Compiled calls so short that entering them takes longer than fusion saves.

## Why it costs
Each call of a compiled callable looks up its guards, runs a wrapper and converts arguments: some
ten microseconds on the host, whatever the work. A call of a few microseconds gets slower.

## Evidence
What torch.compile adds to a call (guard look-up, pre-graph bytecode, runtime wrappers, the
generated wrapper) is more than 30 % of the compiled step, or more than half of all that a step
lost, and compiling hurts: the measured interval lies below 1, and compiled steps take more than
10 % longer. The cost is what running it in eager would save. On a GPU only the part counts that
the device waited for. Calls of very many tensors are left to TV454.

A small call that got faster, or no slower, is information where it stands in a loop inside another
loop, and entering it takes more than 30 % of the compiled step and more than its work: kernels and
the generated wrapper. The cost is then all of that: one entry around the inner loop pays it once.

## What to do
Compile a larger piece: the function that holds the loop, not its body. Or run this one in eager.
With fixed shapes on a GPU, `mode="reduce-overhead"` removes the launches as well.

## Settings
- `least_overhead_share`: part of the compiled step that entering must take, or:
- `least_loss_share`: part of what the step lost, gains elsewhere not taken off.
- `least_ratio`: compiled over eager time of a step that it must reach.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_profiling_torch_compile.html
- torch/_dynamo/eval_frame.py
- torch/_inductor/codegen/wrapper.py
- https://github.com/ScalingIntelligence/KernelBench/issues/68
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf

from traceview.derive.facts.places import frames
from traceview.rules import _breaks
from traceview.rules._entering import entered_regions, entering_ms
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Row,
    Tables,
    about_calls,
    compile_call,
    first_call,
    first_rank,
    is_timed,
    milliseconds,
    outcome,
    percent,
    rows,
    slowdown,
    step_ms,
)

CODE = "TV501"
NEEDS = frozenset({"accounting", "speedups"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"overheads_added"})
#: Each break adds an entry, each variant of a function one more set of guards to try; and where
#: no code is generated, nothing pays for entering it.
FOLLOWS = frozenset(
    {
        *_breaks.RULES,
        "gb-fragmented",
        "rc-limit-hit",
        "gd-guard-overhead",
        "ap-grad-inference",
        "ap-many-tensors",
        "ap-output-views",
        "cap-debug-backend",
        "ind-extern-dominated",
        "cg-dynamic-rerecord",
        "cg-moved-input",
    }
)

#: Below this share the slowdown has another main cause.
LEAST_OVERHEAD_SHARE = 0.30
#: From here on it is the main cause, however small a part of the step.
LEAST_LOSS_SHARE = 0.50
#: Compiled over eager time of a step from which compiling clearly hurts.
LEAST_RATIO = 1.1
_SMALL = (
    "Guards, wrapper and argument handling cost about the same for every call, however little it "
    "does."
)


def check(
    tables: Tables,
    *,
    least_overhead_share: float = LEAST_OVERHEAD_SHARE,
    least_loss_share: float = LEAST_LOSS_SHARE,
    least_ratio: float = LEAST_RATIO,
) -> Iterator[Finding]:
    """At most one finding: at the region that is called most, about all that a step enters."""
    eager, compiled = (step_ms(tables, stance) for stance in ("eager", "compiled"))
    if not ((slower := slowdown(tables)) and eager and compiled):
        return
    hurts = outcome(tables) == "hurt" and slower > least_ratio
    entered, called = entered_regions(tables)
    if not (hurts or _in_inner_loop(tables, entered)):
        return
    overhead, work = entering_ms(tables, compiled, launches=hurts)
    least, share = max(least_overhead_share * compiled, work), overhead / compiled
    if hurts:
        least = min(least_overhead_share * compiled, least_loss_share * _lost_ms(tables))
    if not is_timed(tables) or overhead <= least:
        return

    small = "the call is" if len(entered) < 2 else "the calls are"
    yield Finding(
        code=CODE,
        rule="ap-call-overhead",
        severity="warning" if hurts else "info",
        title=(
            f"Entering {called} takes {percent(share)} of a compiled step: "
            f"{small} too small to gain"
            if hurts
            else f"Entering {called} takes {percent(share)} of a compiled step, more than its work"
        ),
        explanation=(
            f"A step takes {milliseconds(eager)} in eager and {milliseconds(compiled)} "
            f"compiled, {milliseconds(overhead)} of it to enter compiled code. {_SMALL}"
        ),
        cost=(
            Cost(compiled - eager, None, "compiled step less eager step, timed blocks")
            if hurts
            else Cost(overhead, None, "entering compiled code; one entry for many calls saves most")
        ),
        confidence="measured" if hurts else "derived",
        location=(compile_call if hurts else first_call)(entered[0]) if entered else None,
        about=frozenset().union(*(about_calls(tables, row) for row in entered)),
        evidence=(
            Evidence(
                f"look-up and wrappers: {milliseconds(overhead)} of a timed step of "
                f"{milliseconds(compiled)}, not counting what profiling them cost",
                "accounting",
            ),
            Evidence(f"compiled / eager = {compiled / eager:.2f}", "speedups"),
        ),
        what_to_do=(
            "Compile the function that holds the loop around this call, so that one entry "
            f"covers many of them{', or run this one in eager' if hurts else ''}."
        ),
        remedy=(f"eager={entered[0]['name']}",) if hurts and entered else (),
        weighs=not hurts,
    )


def _lost_ms(tables: Tables) -> float:
    """What compiling lost, before what it gained elsewhere; infinite if that is not known."""
    parts: Counter[str] = Counter()
    for row in first_rank(rows(tables, "waterfall_rows")):
        parts[row["effect"]] += row["ms"]
    return sum(ms for ms in parts.values() if ms > 0) or inf


def _in_inner_loop(tables: Tables, entered: list[Row]) -> bool:
    """Whether the lines that led to the region that is called most are in two loops or more."""
    stack = frames(entered[0]["first_call_stack"]) if entered else ()
    known = {(row["file"], row["line"]): row["loops"] for row in rows(tables, "source_lines")}
    return sum(known.get((at.file, at.line)) or 0 for at in stack) > 1

"""
## What it finds
Compiled calls that take or return hundreds of tensors, so that entering them takes much of a step.

## Why it costs
For each tensor that a call is given, guards compare its type, sizes, strides and device, and the
generated wrapper unpacks it, checks its layout and passes it to a kernel; for each that it returns,
the wrapper allocates memory. That is about a microsecond a tensor on the host, however small the
tensor is. Lists of per-object states, and optimizers with very many parameters, have such calls.

## Evidence
Guards on 100 tensors or more in one look-up, and what entering compiled code takes of a timed step:
look-up, wrappers and the generated wrapper. On a GPU only the part counts that the device waited
for, and of the generated wrapper's wait what is left beyond its launches.

## What to do
Keep the values in a few large tensors: `torch.stack` them once, and write the loop over them as one
operation on the first dimension. Or compile the caller, so that they stay inside.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that entering must take.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_profiling_torch_compile.html
- https://docs.pytorch.org/docs/stable/generated/torch.stack.html
- torch/_dynamo/guards.py, `TENSOR_MATCH`
- torch/_inductor/codegen/wrapper.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._entering import entered_regions, entering_ms
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Tables,
    about_calls,
    compile_call,
    first_rank,
    is_timed,
    milliseconds,
    outcome,
    percent,
    plural,
    rows,
    severity_of_loss,
    step_ms,
)

CODE = "TV454"
NEEDS = frozenset({"accounting", "speedups", "guard_costs"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"overheads_added"})

#: Below this share of a step something else is its main cost.
LEAST_SHARE = 0.30
#: From as many on, handling each tensor is no small part of entering a call.
MANY_TENSORS = 100
#: Host time of one launch in a generated wrapper, at most; what it takes beyond is handling inputs.
LAUNCH_US = 20.0


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: at the region that is called most, about all that a step enters."""
    compiled = step_ms(tables, "compiled")
    tensors, handling, evidence = _handling(tables)
    if not compiled or not tensors or not is_timed(tables):
        return
    overhead, _ = entering_ms(tables, compiled, launches=True, more=handling)
    if overhead < least_share * compiled:
        return
    entered, called = entered_regions(tables)
    eager = " Or run this one in eager." if outcome(tables) == "hurt" else ""
    yield Finding(
        code=CODE,
        rule="ap-many-tensors",
        severity=severity_of_loss(tables, overhead),
        title=(
            f"Entering {called} takes {percent(min(1.0, overhead / compiled))} of a compiled step: "
            f"each call checks and passes {tensors:,} tensors"
        ),
        explanation=(
            "Guards check every tensor, and the generated wrapper unpacks each one and passes it "
            "to a kernel. That takes about as long for a small tensor as for a large one."
        ),
        cost=Cost(overhead, None, "entering compiled code, with what its wrapper does for tensors"),
        confidence="derived",
        location=compile_call(entered[0]) if entered else None,
        about=frozenset().union(*(about_calls(tables, row) for row in entered)),
        evidence=(
            Evidence(
                f"look-up and wrappers: {milliseconds(overhead)} of a timed step of "
                f"{milliseconds(compiled)}, not counting what profiling them cost",
                "accounting",
            ),
            *evidence,
        ),
        what_to_do=(
            "Keep the values in a few large tensors, or compile the caller together with work "
            f"that fusing shortens.{eager}"
        ),
        remedy=(f"eager={entered[0]['name']}",) if eager and entered else (),
        weighs=True,
    )


def _handling(tables: Tables) -> tuple[int, float, list[Evidence]]:
    """Tensors of the call that checks most, if many, and ms per step of passing them to kernels.

    On a device the generated wrapper's time is part of the wait for launches: what it takes for
    its launches themselves is left out. The same as evidence.
    """
    checked = first_rank(rows(tables, "guard_costs", kind="TENSOR_MATCH"))
    most = max(checked, key=lambda row: row["guards"], default=None)
    parts = first_rank(rows(tables, "call_path"))
    if most is None or most["guards"] < MANY_TENSORS:
        return 0, 0.0, []
    look_up = [row for row in parts if row["compile_id"] == most["compile_id"] and row["guards"]]
    guards = f"{plural(look_up[0]['guards'], 'guard')}, " if look_up else ""
    evidence = [Evidence(f"{guards}{most['guards']:,} of them on tensors", "guard_costs")]
    launched = first_rank(rows(tables, "kernel_launches", stance="compiled", kind="launch"))
    launched = [row for row in launched if row["graph_key"] and row["step"] is not None]
    launches = len(launched) / max(1, len({row["step"] for row in launched}))
    wrapper = 0.0
    for row in parts:
        if row["part"] == "generated_wrapper":
            known = row["us_less_profiler"]
            wrapper += (row["us_per_call"] if known is None else known) * (row["calls"] or 0.0)
    accounts = first_rank(
        rows(tables, "accounting", stance="compiled", category="idle_launch_bound")
    )
    waited = sum(row["ms"] for row in accounts)
    ms: float = min(waited, max(0.0, wrapper - launches * LAUNCH_US) / 1e3)
    if ms:
        text = (
            f"generated wrapper: {milliseconds(wrapper / 1e3)} of host time per step for "
            f"{round(launches)} launches of compiled code"
        )
        evidence.append(Evidence(text, "call_path"))
    return most["guards"], ms, evidence

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
the device waited for. Where a call checks 100 tensors or more, that includes what the generated
wrapper takes beyond its launches: it unpacks and passes on each of them.

A small call that got faster, or no slower, is information where it stands in a loop inside another
loop, and entering it takes more than 30 % of the compiled step and more than its work: kernels and
the generated wrapper. The cost is then all of that: one entry around the inner loop pays it once.

## What to do
Compile a larger piece: the function that holds the loop, not its body. Or run this one in eager.
Of many tensors: pass a few large ones, or compile their caller.
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
    plural,
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
        "ap-output-views",
        "cap-debug-backend",
        "ind-extern-dominated",
        "cg-dynamic-rerecord",
        "cg-moved-input",
    }
)

#: Idle time of a device behind torch.compile's own work on the host.
_WAITED_FOR = frozenset({"idle_guards", "idle_call_overhead"})
_WRAPPER = "overhead_generated_wrapper"
_NO_PART = ("unexplained", "machine_speed")
#: Below this share the slowdown has another main cause.
LEAST_OVERHEAD_SHARE = 0.30
#: From here on it is the main cause, however small a part of the step.
LEAST_LOSS_SHARE = 0.50
#: Compiled over eager time of a step from which compiling clearly hurts.
LEAST_RATIO = 1.1
#: Tensors of one call from which handling each of them is no small part of entering it.
MANY_TENSORS = 100
#: Host time of one launch in a generated wrapper, at most; what it takes beyond is handling inputs.
LAUNCH_US = 20.0
_MANY = (
    "Guards check every tensor, and the generated wrapper unpacks each one and passes it to a "
    "kernel; eager hands over the whole list at once."
)
_SMALL = (
    "Guards, wrapper and argument handling cost about the same for every call, however little it "
    "does."
)
_FEWER = (
    "Run this one in eager. Or keep the values in a few large tensors, or compile the caller "
    "together with work that fusing shortens."
)
#: Callables that a title has room for.
MOST_NAMES = 2


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
    hurts, (entered, called) = outcome(tables) == "hurt" and slower > least_ratio, _entered(tables)
    if not (hurts or _in_inner_loop(tables, entered)):
        return
    tensors, handling, evidence = _handling(tables) if hurts else (0, 0.0, [])
    overhead, work = _entering_ms(tables, compiled, launches=hurts, more=handling)
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
            + (
                f"each call checks and passes {tensors:,} tensors"
                if tensors
                else f"{small} too small to gain"
            )
            if hurts
            else f"Entering {called} takes {percent(share)} of a compiled step, more than its work"
        ),
        explanation=(
            f"A step takes {milliseconds(eager)} in eager and {milliseconds(compiled)} "
            f"compiled, {milliseconds(overhead)} of it to enter compiled code. "
            + (_MANY if tensors else _SMALL)
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
            *evidence,
        ),
        what_to_do=(
            _FEWER
            if tensors
            else "Compile the function that holds the loop around this call, so that one entry "
            f"covers many of them{', or run this one in eager' if hurts else ''}."
        ),
        remedy=(f"eager={entered[0]['name']}",) if hurts and entered else (),
        weighs=not hurts,
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


def _entering_ms(
    tables: Tables, compiled: float, *, launches: bool, more: float
) -> tuple[float, float]:
    """What of a timed step of ``compiled`` ms entering compiled code takes, and its work.

    ``launches``: with what launches its kernels, which one entry for many calls still runs.
    ``more``: what is counted as a device's wait for launches and is no launch's.
    """
    accounts = first_rank(rows(tables, "accounting", stance="compiled"))
    without = () if launches else (_WRAPPER,)
    overhead: float = more + sum(
        row["ms"]
        for row in accounts
        if (row["kind"] == "overhead" or row["category"] in _WAITED_FOR)
        and row["category"] not in without
    )
    work: float = sum(
        row["ms"] for row in accounts if row["kind"] == "busy" or row["category"] in without
    )
    # Where the profiled step was a slower one than those that were timed, each part was; where it
    # was a faster one, so far as the machine's speed is why.
    parts: float = sum(row["ms"] for row in accounts if row["kind"] not in _NO_PART)
    speed: float = sum(row["ms"] for row in accounts if row["kind"] == "machine_speed")
    scale = min(1.0 + max(0.0, speed) / parts, compiled / parts) if parts else 1.0
    return overhead * scale, work * scale


def _lost_ms(tables: Tables) -> float:
    """What compiling lost, before what it gained elsewhere; infinite if that is not known."""
    parts: Counter[str] = Counter()
    for row in first_rank(rows(tables, "waterfall_rows")):
        parts[row["effect"]] += row["ms"]
    return sum(ms for ms in parts.values() if ms > 0) or inf


def _entered(tables: Tables) -> tuple[list[Row], str]:
    """The regions that a step enters, the one that is called most first, and their names.

    What is called less than half as often as another region is not part of every step.
    """
    regions = sorted(first_rank(rows(tables, "regions")), key=lambda row: -(row["calls"] or 0))
    entered = [row for row in regions if 2 * (row["calls"] or 0) >= (regions[0]["calls"] or 0)]
    known = (row["name"] for row in entered if row["name"])
    names = list(dict.fromkeys(name.rpartition("<locals>.")[2] for name in known))
    if len(names) > MOST_NAMES:
        names[MOST_NAMES - 1 :] = [f"{len(names) - MOST_NAMES + 1} other callables"]
    return entered, " and ".join(names) or "the compiled callable"


def _in_inner_loop(tables: Tables, entered: list[Row]) -> bool:
    """Whether the lines that led to the region that is called most are in two loops or more."""
    stack = frames(entered[0]["first_call_stack"]) if entered else ()
    known = {(row["file"], row["line"]): row["loops"] for row in rows(tables, "source_lines")}
    return sum(known.get((at.file, at.line)) or 0 for at in stack) > 1

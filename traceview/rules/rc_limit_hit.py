"""
## What it finds
A function that reached torch's recompile limit (8 variants by default).

## Why it costs
From then on every call that matches none of the compiled variants runs in eager, with what it
calls, for the rest of the job; and it checks all their guards first.

## Evidence
torch's warning that the limit was hit, or a compile whose outcome is `limit`; the guard behind most
of the recompiles before it.

An error where calls went on after the limit, and the profiled steps ran no compiled code at all or
lose much: 5 % of the step, or 0.05 ms and 1 % of it. A warning where compiled code still does most
of the work. Where no calls went on, it is a warning from a second of compiling on.

## What to do
Fix what changes: the finding names it. Raise `torch._dynamo.config.recompile_limit` only where the
number of variants is finite and known (up to torch 2.6 it is called `cache_size_limit`). It
does not help where no profiled step used a variant: then the values do not come back.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/config.py, `recompile_limit`
- https://github.com/pytorch/pytorch/issues/167504
- https://github.com/pytorch/pytorch/issues/114511
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _recompiles
from traceview.rules.kit import (
    Confidence,
    Cost,
    Finding,
    Location,
    Row,
    Severity,
    Tables,
    first,
    first_rank,
    from_row,
    milliseconds,
    outcome,
    region_of,
    rows,
    severity,
    shorten,
    step_ms,
)
from traceview.words import names

CODE = "TV202"
NEEDS = frozenset({"compiles", "recompile_causes"})
SEVERITIES = ("error", "warning", "info")
EXPLAINS = frozenset({"compile", "idle_compile", "overhead_cache_lookup", "idle_guards"})
FOLLOWS = frozenset({"rc-*"})

#: Values that a title has room for.
FEW = 3
_NOTHING_RAN = " No compiled code at all ran in the profiled steps."
_LIMIT = re.compile(r"limit \((\d+)\)")
_REMEDIES = {
    "module_int": (
        "Keep {source} out of forward: count in the caller, or register it as a buffer."
    ),
    "static": "Let the size be symbolic (no dynamic=False), or pad to a few sizes.",
    "pinned": "Do not decide on the size inside, and do not look anything up with it.",
    "parameter": "Pass plain tensors (parameter.data): sizes of parameters are never symbolic.",
    "value": "Pass {source} as a tensor, or keep it constant.",
    "choice": "Compile one function for each value of {source}, and choose outside it.",
    "obj_id": "Create {source} once, outside the call.",
    "type_id": "Pass {source} with one type.",
    "length": "Keep the length of {source} fixed: allocate it once.",
}

#: Causes that a setting of Dynamo's takes away.
_SWITCHES = {
    "module_int": ("torch._dynamo.config.allow_unspec_int_on_nn_module=True",),
    "parameter": ("torch._dynamo.config.force_parameter_static_shapes=False",),
}


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a function that reached the limit."""
    # Compiled regions that a profiled step entered; None where none was profiled.
    counts = first(tables, "step_counts", stance="compiled")
    entered = counts["compiled_regions"] if counts else None
    for frame in sorted(_recompiles.limited_frames(tables), key=str):
        compiles = [row for row in rows(tables, "compiles") if _recompiles.frame_of(row) == frame]
        warned = [
            row
            for row in rows(tables, "warnings", kind="recompile_limit")
            if (row["file"], row["line"]) == frame
        ]
        if not (compiles or warned):
            continue

        # What is behind most of its recompiles.
        own = (c for c in _recompiles.by_source(tables) if _recompiles.frame_of(c.row) == frame)
        cause = max(own, key=lambda cause: len(cause.rows), default=None)
        named = (*(row["co_name"] for row in compiles), *(row["function"] for row in warned))
        name = next(filter(None, named), None)
        limit = next((m[1] for row in warned if (m := _LIMIT.search(row["message"] or ""))), None)
        file, line = frame
        place = Location(file, line, name) if file and line is not None else None
        if cause:
            place = _recompiles.reading(tables, cause).place

        # Where calls go on: whether most of the work still fits the variants there are.
        later = _later_calls(tables, compiles)
        cost, confidence = _cost(tables, compiles)
        graded: Severity = "warning"
        if not later:
            graded = _recompiles.severity_of(tables, cost.seconds)
        elif not (entered and outcome(tables) == "helped"):
            costly = severity(tables, cost.ms_per_step) == "warning"
            graded = "error" if costly or entered == 0 else "warning"

        logged = [from_row(shorten(row["message"]), "warnings", row) for row in warned[:1]]
        ended = [row for row in compiles if row["outcome"] == "limit"][:1]
        for row in ended:
            why = shorten(row["fail_reason"]) or "limit"
            logged.append(from_row(f"compile {row['compile_id']}: {why}", "compiles", row))
        yield Finding(
            code=CODE,
            rule="rc-limit-hit",
            severity=graded,
            title=(
                f"{_recompiles.opening(names.function(name))} hit the recompile limit"
                f"{f' ({limit})' if limit else ''}{f': {cause.changes(FEW)}' if cause else ''}"
            ),
            explanation=(
                "torch compiles no further variant: a call that matches none of the compiled "
                "ones checks them all and then runs in eager, for the rest of the job."
                + (f" {later:,} calls were seen after the last compile." if later else "")
                + (_NOTHING_RAN if entered == 0 else "")
            ),
            cost=cost,
            confidence=confidence,
            location=place,
            about=frozenset({f"{frame[0]}:{frame[1]}"}) if all(frame) else frozenset(),
            evidence=(*logged, *(cause.evidence() if cause else ())),
            what_to_do=_remedy(tables, cause, used_again=entered != 0),
            remedy=_settings(tables, cause, limit, used_again=entered != 0),
        )


def _later_calls(tables: Tables, compiles: list[Row]) -> int:
    """Calls of the callables that it was compiled for, beyond one for each of its compiles."""
    regions = first_rank(rows(tables, "regions"))
    owners = [region_of(tables, row["compile_key"]) for row in compiles]
    own = [row for row in regions if row in owners]
    calls = sum(row["calls"] or 0 for row in own or regions)
    return max(0, calls - len(first_rank(compiles)))


def _cost(tables: Tables, compiles: list[Row]) -> tuple[Cost, Confidence]:
    """The step's loss where compiling now hurts, else the seconds of all variants but the first.

    The loss is measured; that the remedy saves no more than that is not.
    """
    eager, compiled = (step_ms(tables, stance) for stance in ("eager", "compiled"))
    if eager is not None and compiled is not None and compiled > eager:
        about = (
            f"compiled {milliseconds(compiled)}, eager {milliseconds(eager)}; what compiled code "
            "would save comes on top"
        )
        return Cost(ms_per_step=compiled - eager, about=about), "derived"
    again = {row["compile_key"] for row in first_rank(compiles) if row["frame_compile_id"]}
    return _recompiles.compiled_again(tables, again), "measured"


def _remedy(tables: Tables, cause: _recompiles.Cause | None, *, used_again: bool) -> str:
    first = "Fix what the guards name."
    if cause:
        if cause.is_learning_rate:
            return _recompiles.TENSOR_RATE
        last = cause.rows[-1]
        why = "choice" if cause.is_choice else last["size_reason"] or str(last["kind"])
        first = _REMEDIES.get(why, first).format(source=cause.source)
    setting = _recompiles.recompile_limit(tables)
    if not used_again:
        return f"{first} Raising {setting} would not help: no profiled step used a variant."
    return f"{first} Raising {setting} helps only where the number of variants is finite."


def _settings(
    tables: Tables, cause: _recompiles.Cause | None, limit: str | None, *, used_again: bool
) -> tuple[str, ...]:
    """What makes the recompiles unnecessary, where a setting does; else a higher limit, if any
    variant there is was met again.
    """
    reason = cause.rows[-1]["size_reason"] or str(cause.rows[-1]["kind"]) if cause else ""
    if reason in _SWITCHES:
        return _SWITCHES[reason]
    called = region_of(tables, cause.row["compile_key"]) if cause else None
    if reason == "static" and called is not None and called["dynamic"] == "False":
        return ("dynamic=None",)
    if not used_again or (cause and cause.is_learning_rate):
        return ()
    return (f"{_recompiles.recompile_limit(tables)}={8 * int(limit or 8)}",)

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
Fix what changes: the finding names it. A higher `torch._dynamo.config.recompile_limit` (up to torch
2.6 it is called `cache_size_limit`) helps where the values come back. The profile shows that: some
calls of a step run a variant, others find none, and from their ratio follows about how many values
there are. The setting is offered where the new limit holds that many. Where no call runs a variant,
each has another value, and no limit helps; nor where a call that runs a variant takes longer than
an eager step. If nothing else of the callable is compiled either, leave it in eager.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/config.py, `recompile_limit`
- https://github.com/pytorch/pytorch/issues/167504
- https://github.com/pytorch/pytorch/issues/114511
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from traceview.rules import _recompiles
from traceview.rules.kit import (
    Confidence,
    Cost,
    Evidence,
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
    percent,
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
#: The limit that is offered, as a multiple of the one that was hit.
RAISED, USUAL_LIMIT = 8, 8
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


class _Fit(msgspec.Struct, frozen=True):
    """Calls of a function in a profiled step: those that ran a variant, and those that found none.

    ``missed`` may count calls of other functions, where several of a callable reached the limit.
    ``ran_ms``: what those that ran one took at least, one call; ``eager_ms``: what one takes in
    eager at most.
    """

    ran: float
    missed: float
    variants: int
    ran_ms: float | None
    eager_ms: float | None

    @property
    def slower(self) -> bool:
        """Whether a compiled variant is slower than eager."""
        return None not in (self.ran_ms, self.eager_ms) and self.ran_ms > self.eager_ms  # type: ignore[operator]

    @property
    def useless(self) -> bool:
        """Whether nothing is gained by compiling it as often as torch may."""
        return not self.ran or self.slower

    @property
    def values(self) -> int:
        """About how many values there are, if all come as often."""
        return round(self.variants * (self.ran + self.missed) / self.ran)

    @classmethod
    def of(cls, tables: Tables, compiles: list[Row], entered: float | None) -> _Fit | None:
        """How many of its calls fitted a variant; None where no profile shows that."""
        parts = first_rank(rows(tables, "call_path"))
        graphs = [row for row in parts if row["part"] == "compiled_region" and row["compile_id"]]
        if entered is None or (entered and not graphs):
            return None
        ids = {row["compile_id"] for row in compiles}
        ran = [row for row in graphs if row["compile_id"] in ids]
        regions = _regions(tables, compiles) | {row["region_id"] for row in ran}
        missed = (
            row["calls"] or 0.0
            for row in parts
            if row["part"] == "cache_lookup" and row["compile_id"] is None
            if row["region_id"] is None or row["region_id"] in regions
        )
        fitted, other = sum(row["calls"] or 0.0 for row in ran), sum(missed)
        variants = {row["compile_id"] for row in compiles if row["outcome"] == "ok"}
        # The host and a device work at the same time; on a CPU kernels are the host's work.
        kernels = first_rank(rows(tables, "kernel_groups", stance="compiled"))
        own = [row for row in kernels if row["compile_id"] in ids]
        device = sum(row["ms"] or 0.0 for row in own if row["clock"] == "device")
        host = sum(row["ms"] or 0.0 for row in own if row["clock"] == "host") + sum(
            (row["calls"] or 0.0) * (row["us_less_profiler"] or 0.0) / 1e3
            for row in parts
            if row["compile_id"] in ids
        )
        eager = step_ms(tables, "eager")
        return cls(
            fitted,
            other,
            len(variants),
            max(host, device) / fitted if fitted else None,
            eager / (fitted + other) if eager and fitted else None,
        )


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

        fit, raised = _Fit.of(tables, compiles, entered), RAISED * int(limit or USUAL_LIMIT)
        # Where calls go on: whether most of the work still fits the variants there are.
        later = _later_calls(tables, compiles)
        cost, confidence = _cost(tables, compiles)
        graded: Severity = "warning"
        if not later:
            graded = _recompiles.severity_of(tables, cost.seconds)
        elif not (entered and outcome(tables) == "helped"):
            costly = severity(tables, cost.ms_per_step) == "warning"
            graded = "error" if costly or entered == 0 else "warning"

        loses = later and cost.ms_per_step and severity(tables, cost.ms_per_step) != "info"
        eager = _alone(tables, compiles) if loses and fit and fit.useless else None
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
            evidence=(*_logged(compiles, warned), *(cause.evidence() if cause else ())),
            what_to_do=" ".join(_advice(tables, cause, raised, fit, eager)),
            remedy=_settings(tables, cause, raised, fit, eager),
        )


def _logged(compiles: list[Row], warned: list[Row]) -> Iterator[Evidence]:
    """Torch's warning, and the compile that the limit ended."""
    for row in warned[:1]:
        yield from_row(shorten(row["message"]), "warnings", row)
    for row in [row for row in compiles if row["outcome"] == "limit"][:1]:
        why = shorten(row["fail_reason"]) or "limit"
        yield from_row(f"compile {row['compile_id']}: {why}", "compiles", row)


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


def _regions(tables: Tables, compiles: list[Row]) -> set[int]:
    """Numbers of the callables that these compiles were for, or whose code it is."""
    codes = {_recompiles.frame_of(row) for row in compiles}
    found = [region_of(tables, row["compile_key"]) for row in compiles]
    found += [
        row
        for row in first_rank(rows(tables, "regions"))
        if (row["target_file"], row["target_line"]) in codes
    ]
    return {row["region_id"] for row in found if row}


def _alone(tables: Tables, compiles: list[Row]) -> str | None:
    """The callable that these compiles were for, if no other compiled code of it was profiled."""
    own, ids = _regions(tables, compiles), {row["compile_id"] for row in compiles}
    regions = [row for row in first_rank(rows(tables, "regions")) if row["region_id"] in own]
    names = {row["name"] for row in regions}
    others = any(
        row["region_id"] is None or row["region_id"] in own
        for row in first_rank(rows(tables, "call_path"))
        if row["part"] == "compiled_region" and row["compile_id"] not in ids
    )
    return names.pop() if len(names) == 1 and not others else None


def _advice(
    tables: Tables,
    cause: _recompiles.Cause | None,
    raised: int,
    fit: _Fit | None,
    eager: str | None,
) -> Iterator[str]:
    """Sentences: what to fix, and what a higher limit does."""
    if cause and cause.is_learning_rate:
        yield _recompiles.TENSOR_RATE
        return
    first = "Fix what the guards name."
    if cause:
        last = cause.rows[-1]
        why = "choice" if cause.is_choice else last["size_reason"] or str(last["kind"])
        first = _REMEDIES.get(why, first).format(source=cause.source)
    yield first
    setting = _recompiles.recompile_limit(tables)
    if fit is None:
        yield f"Raising {setting} helps only where the number of variants is finite."
    elif not fit.ran:
        yield f"Raising {setting} would not help: no call in the profile used a variant."
    elif fit.slower:
        yield (
            f"Raising {setting} would not help: a call that uses a variant takes "
            f"{milliseconds(fit.ran_ms)}, in eager {milliseconds(fit.eager_ms)}."
        )
    elif not fit.missed:
        yield f"Raising {setting} would not help: every call in the profile used a variant."
    else:
        holds = "holds them" if fit.values <= raised else "does not hold them"
        yield (
            f"In the profile {percent(fit.ran / (fit.ran + fit.missed))} of its calls used a "
            f"variant, so there are about {fit.values} values: {setting} = {raised} {holds}."
        )
    if eager:
        yield f"Until that is fixed, leave {eager} in eager."


def _settings(
    tables: Tables,
    cause: _recompiles.Cause | None,
    raised: int,
    fit: _Fit | None,
    eager: str | None,
) -> tuple[str, ...]:
    """What makes the recompiles unnecessary, where a setting does; else a limit that holds all
    values, where they come back; else eager, where nothing is compiled.
    """
    reason = cause.rows[-1]["size_reason"] or str(cause.rows[-1]["kind"]) if cause else ""
    if reason in _SWITCHES:
        return _SWITCHES[reason]
    called = region_of(tables, cause.row["compile_key"]) if cause else None
    if reason == "static" and called is not None and called["dynamic"] == "False":
        return ("dynamic=None",)
    if eager:
        return (f"eager={eager}",)
    if cause and cause.is_learning_rate:
        return ()
    if fit and (fit.useless or not fit.missed or fit.values > raised):
        return ()
    return (f"{_recompiles.recompile_limit(tables)}={raised}",)

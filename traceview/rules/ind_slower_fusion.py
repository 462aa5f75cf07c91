"""
## What it finds
Generated kernels that take longer than the eager operators that they replaced, where fusion as a
whole loses time and no other rule on generated code explains most of it.

## Why it costs
Fusing saves memory traffic, and usually time. Some generated code loses more than that: ATen's
kernel for an operator such as grid_sample or sort is written by hand, and Inductor's is put
together from index arithmetic; ATen calls other libraries for functions than generated vector code
does; and a GPU kernel of very many operations, above all in float64, needs more registers than
there are.

## Evidence
Both sides are measured: the generated kernels of a match group, and the eager operators of the same
lines. What the slowest kernel's source shows is quoted: how much of it works on one element at a
time, what it reads at places calculated from data, which functions it calls, and whether in
float64. A `grid_sample` is named where most of that kernel's instructions are in loops that read
so. Spilled registers are not recorded. Attention that runs as separate operators because its
backends are switched off is left to TV424.

## What to do
Keep these operators out of compiled code, with `torch.compiler.disable` around the call or, without
a graph break, a custom operator, and compare. In float64 on a GPU: cast the input that makes it so.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the kernels must lose. Where compiling
  hurts, half of what the step loses is enough.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- https://docs.pytorch.org/docs/stable/library.html
- torch/_inductor/decomposition.py
- https://github.com/pytorch/pytorch/issues/93552
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import at_first, attention_lines, location, locations
from traceview.rules._starts import of_keys
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    about,
    first_rank,
    from_row,
    milliseconds,
    outcome,
    percent,
    plural,
    rows,
    severity,
    short,
    step_ms,
)
from traceview.words.text import listed

CODE = "TV427"
NEEDS = frozenset({"slow_fusions", "step_counts:eager"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion"})
#: These say why.
FOLLOWS = frozenset(
    {
        "ap-grad-inference",
        "ap-promoted-float64",
        "cap-cached-function",
        "ind-few-programs",
        "ind-partial-write",
        "ind-random-numbers",
        "ind-recomputed",
        "ind-scalar-loop",
        "ind-slice-gradients",
        "ind-slow-kernel",
        "ind-stored-masks",
        "ind-strided-rows",
        "ind-unused-gradients",
        "ind-weight-casts",
        "ind-weight-layout",
        "ind-weight-work",
        "rc-needless-dynamic",
    }
)

#: Less of a step may be within what two profiles of it differ by.
LEAST_SHARE = 0.10
#: Of a step that compiling made slower, if it is half of that.
LEAST_OF_HURT = 0.03
#: A smaller part of a kernel's instructions is no reason for what the whole kernel takes.
_NOTABLE_SINGLE = 0.25
#: With more of its instructions for something else, that may be what is slow.
_MOST_LOOKING_UP = 0.50
_DISABLED = Snippet("python", "f = torch.compiler.disable(f)  # f: the function that calls them")


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding a match group."""
    step, lines = step_ms(tables, "compiled") or 0.0, tables.once(attention_lines)
    enough = least_share * step
    if outcome(tables) == "hurt":  # what most of the loss is counts as well
        most = (step - (step_ms(tables, "eager") or 0.0)) / 2
        enough = min(enough, max(most, LEAST_OF_HURT * step))
    for row in first_rank(rows(tables, "slow_fusions")):
        left = row["slower_ms"] - row["explained_ms"]
        # What one group loses and another gains may be work that was matched to the wrong one.
        lost = min(row["slower_ms"], row["effect_ms"])
        elsewhere = lines.intersection((row["user_lines"] or ())[:1])
        if not step or lost < enough or left <= row["explained_ms"] or elsewhere:
            continue
        places = locations(row["user_lines"] or ())
        where = at_first(*places)
        one = row["kernels"] == 1
        took, before = milliseconds(row["compiled_ms"]), milliseconds(row["eager_ms"] or 0.0)
        title = (
            f"The generated kernel{'' if one else 's'}{where} take{'s' if one else ''} {took} "
            f"of a step, the eager operators that {'it' if one else 'they'} replaced {before}"
        )
        name, sampler = row["operator"], _sampler(row)
        if sampler:
            name, places = "grid_sample", list(dict.fromkeys([sampler, *places]))
        if name and places:
            title = (
                f"{name} at {short(places[0])} is slower in generated code: {took} of a step "
                f"with what is fused to it, {before} in eager"
            )
        in_double = row["float64"] is True
        more = "" if one else f" and {row['kernels'] - 1} more"
        yield Finding(
            code=CODE,
            rule="ind-slower-fusion",
            severity=severity(tables, left) if outcome(tables) == "hurt" else "info",
            title=title,
            explanation=" ".join(_shows(row)),
            cost=Cost(left, None, "generated kernels less the eager operators that they replaced"),
            confidence="derived",
            location=places[0] if places else None,
            about=about(*of_keys(tables, {row["compile_key"]})),
            evidence=(
                from_row(f"{row['kernel_name']}{more}: {took}", "slow_fusions", row),
                Evidence(f"in eager: {row['operators']:,.3g} operators, {before}", "match_groups"),
            ),
            what_to_do=(
                "Cast the float64 input to float32 before the call, if that is precise enough. Or "
                "leave"
                if in_double
                else "Leave"
            )
            + (
                " this call in eager, where ATen has vector code for it, and compare: the rest is "
                "compiled around it."
                if sampler
                else " these lines in eager, and compare: the rest is then compiled around them."
            ),
            snippet=_DISABLED,
            also_at=tuple(places[1:4]),
        )


def _sampler(row: Row) -> Location | None:
    """The ``grid_sample`` that most of the slowest kernel's instructions are for, if any are."""
    if not (row["reader"] or "").startswith("grid_sampler") or not row["reader_line"]:
        return None
    return location(row["reader_line"]) if row["looking_up"] >= _MOST_LOOKING_UP else None


def _shows(row: Row) -> Iterator[str]:
    """Sentences on the slowest kernel's code."""
    names = row["functions"] or []
    functions = listed(names)
    if row["operations"]:
        precision = " in float64" if row["float64"] else ""
        called = f" and calls {functions} {plural(row['calls'], 'time')}" if names else ""
        yield (
            f"The slowest kernel computes {row['operations']:,} values an element{precision}"
            f"{called}: so much in one kernel may not fit in registers. Whether it does is not "
            "recorded."
        )
    elif row["single"] is not None:
        one_at_a_time = row["single"] >= _NOTABLE_SINGLE
        if one_at_a_time:
            yield (
                f"{percent(row['single'])} of the slowest kernel's instructions work on one "
                "element at a time."
            )
        if row["looked_up"]:
            yield (
                f"{'It' if one_at_a_time else 'The slowest kernel'} reads {row['looked_up']:,} "
                "elements a run at places calculated from data."
            )
        if _sampler(row):
            yield (
                f"{percent(row['looking_up'])} of its instructions are in the loops that do so: "
                "Inductor has no kernel of its own for grid_sample, and puts it together from "
                "index arithmetic."
            )
        if names:
            owner = "Its" if one_at_a_time or row["looked_up"] else "The slowest kernel's"
            yield f"{owner} loops call {functions}; ATen may use a faster library for them."
        elif not (one_at_a_time or row["looked_up"]):
            yield "The slowest kernel's source shows no reason."
    else:
        yield "What their code does is not recorded."

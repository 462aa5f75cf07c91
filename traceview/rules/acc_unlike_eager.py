"""
## What it finds
Compiled code that gives other results or gradients than eager for the same call when the script
ends.

## Why it costs
The script silently computes something other than what it says. Often the code was right when it was
compiled: a value that it holds as a constant has changed since, and no guard looks at it. A
`guard_filter_fn` leaves guards out: what they would have checked is such a constant, and so is what
a function marked with `assume_constant_result` gives. A cudagraph replays kernels with the numbers
and addresses that they had when it was recorded: an operator of your own that reads a Python
number, or a tensor that it is not given, keeps the one of then. A comparison that compiles afresh
(`--compare-outputs`) is blind to it.

## Evidence
When the script has ended, one of its calls is made with the script's own objects and compiled code,
and in eager, from the same state and random numbers. What a call writes is put back. If the script
ran a backward through it, gradients are compared as well. The difference of a floating-point result
is its root mean square as part of eager's values. Noise is how far it moves in a second call in
eager, with every operator's result moved by a rounding. The rule reports a difference of more than
ten times that noise and more than 0.1 % (2 % where something is computed in low precision). It is
silent where eager draws random numbers, where results may depend on which of equal values an
operator takes, and where the call would compile again. Below 1 % it is a warning: where a gradient
is the small rest of large ones, functions that compiled code approximates otherwise may do as much.

Where cudagraphs were replayed, the same compiled code runs once more without them, which shows
whether they are what is wrong.

## What to do
Hand the value over as an argument (a tensor, where it changes often), so that compiled code reads
it; or call `torch.compiler.reset()` after each change. An operator that can't be given what it
reads is tagged `torch.Tag.cudagraph_unsafe`. If nothing that the callable reads has
changed, `traceview accuracy --bisect` finds the operator. A `guard_filter_fn` is the first suspect:
compile without it, or keep the guards on all that the script changes.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.assume_constant_result.html
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.reset.html
- torch/_dynamo/decorators.py, `assume_constant_result`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.facts.outputs import end_is_wrong, is_recorded, own_operators
from traceview.rules._accuracy import RESULT, result_name
from traceview.rules._starts import options
from traceview.rules.kit import (
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    about_region,
    compile_call,
    first_rank,
    from_row,
    line_of,
    percent,
    rows,
    short,
)

CODE = "TV707"
NEEDS = frozenset({"end_checks"})
SEVERITIES = ("error", "warning")
FOLLOWS = frozenset(
    {"acc-backend-bug", "acc-dropped-operator", "acc-frozen-weights", "acc-hook-ignored"}
)

#: Below that, approximations of functions that differ by digits may add up to as much.
_SURE = 0.01
#: All guards are kept.
_ALL_GUARDS = ("options.guard_filter_fn=None",)


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each compiled callable."""
    regions = {row["region_id"]: row for row in first_rank(rows(tables, "regions"))}
    for row in filter(end_is_wrong, first_rank(rows(tables, "end_checks"))):
        region = regions.get(row["region_id"])
        name = region["name"] if region else "callable"
        result, apart = result_name(row["name"]), percent(row["relative_error"])
        noise = percent(row["noise"]) if row["noise"] >= 1e-4 else "less than 0.01 %"
        place, made = line_of(row), compile_call(region)
        why, what_to_do, snippet, remedy = _cause(row, region, place, made)
        evidence = [
            from_row(
                f"{result} ({row['dtype']}): root mean square of the difference {apart} of eager's "
                f"values; roundings make {noise}",
                "end_checks",
                row,
            ),
            Evidence(f"results compared: {row['results']}", "end_checks"),
        ]
        if remedy == _ALL_GUARDS:
            at = f" ({short(made)})" if made else ""
            evidence.append(Evidence(f"torch.compile was given guard_filter_fn{at}", "regions"))
        yield Finding(
            code=CODE,
            rule="acc-unlike-eager",
            severity="error" if row["relative_error"] >= _SURE else "warning",
            title=f"Compiled {name} gives other results than eager: {result} differs by {apart}",
            explanation=(
                "The same call was made at the script's end, by the script's compiled code and in "
                f"eager, with the script's own objects. {why}"
            ),
            cost=RESULT,
            confidence="measured",
            location=place or made,
            also_at=(made,) if place and made else (),
            evidence=tuple(evidence),
            what_to_do=what_to_do,
            snippet=snippet,
            remedy=remedy or ((f"eager={name}",) if region else ()),
            about=about_region(region),
        )


def _cause(
    row: Row, region: Row | None, place: Location | None, made: Location | None
) -> tuple[str, str, Snippet | None, tuple[str, ...]]:
    """Why, what to do, a snippet and settings that would show it; none: eager shows it."""
    if is_recorded(row):
        own = own_operators(row)
        at = f" ({short(place)})" if place and len(own) == 1 else ""
        named = f"{' and '.join(own)}{at}" if own else "what runs in it"
        why = (
            "Without its cudagraph the same compiled code gives eager's results. A cudagraph "
            "replays kernels with the numbers and addresses that they had when it was recorded; "
            f"{named} takes some that torch does not see, such as a number or a tensor that is no "
            "argument."
        )
        what_to_do = (
            "Hand over what it reads as a tensor argument, or tag the operator "
            "`torch.Tag.cudagraph_unsafe` (torch 2.9 or later), which keeps it out of cudagraphs."
        )
        operator = own[0].replace(".", "::", 1) if own else "shop::scale"
        tagged = "mutates_args=(), tags=(torch.Tag.cudagraph_unsafe,)"
        snippet = Snippet("python", f'@torch.library.custom_op("{operator}", {tagged})')
        return why, what_to_do, snippet, ("options.triton.cudagraphs=False",)
    if row["constant"]:
        why = (
            f"{row['constant']}() ({short(place)}) is marked with assume_constant_result: it "
            "ran once, while the code was compiled, and compiled code keeps what it gave then. "
            "Nothing guards what it reads."
        )
        what_to_do = (
            f"Hand over what {row['constant']}() gives as an argument, or call "
            "torch.compiler.reset() after each change of what it reads."
        )
        reset = Snippet("python", "torch.compiler.reset()  # after each change")
        return why, what_to_do, reset, ()
    if region and options(region).get("guard_filter_fn"):
        why = (
            "Guards that guard_filter_fn leaves out are not checked: compiled code keeps what it "
            "read when it was compiled, whatever changes since."
        )
        what_to_do = (
            f"Suspect guard_filter_fn{f' ({short(made)})' if made else ''} first: guards that it "
            "drops are not checked, so what changes stays as it was when compiled. Compile without "
            "it, or have it keep the guards on all that the script changes (globals, attributes, "
            "numbers)."
        )
        return why, what_to_do, None, _ALL_GUARDS
    why = "Compiled code may hold a value that has changed since it was compiled, or be wrong"
    what_to_do = (
        "Look for what the callable reads and the script changes (globals, attributes, hooks), "
        "and hand it over as an argument. If there is nothing, let traceview find the operator."
    )
    bisect = Snippet("shell", "traceview accuracy --bisect SCRIPT")
    return f"{why} from the start.", what_to_do, bisect, ()

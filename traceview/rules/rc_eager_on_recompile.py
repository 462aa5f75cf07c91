"""
## What it finds
Calls of a compiled function that run in eager because of
`torch.compiler.set_stance("eager_on_recompile")`: none of the compiled versions fits them.

## Why it costs
Under that stance Dynamo runs what is compiled and compiles nothing more. A call with other sizes,
types or values than those of the warm-up runs the original Python code every time, with no message.

## Evidence
Table `served_calls`: watched calls under the stance, and those of them in which no guards held. An
error where these are all of them, so that compiling has no effect, a warning where they are at
least a quarter, information from 5 % on. Needs torch 2.8 or later.

## What to do
Before the stance is set, call the function with every size that comes. For many sizes, mark the
dimension (`torch._dynamo.mark_dynamic`), pass `dynamic=True`, or warm up with two different sizes,
which makes the dimension dynamic. Or pad the inputs to a few sizes. `traceview try` puts the stance
aside (`stance=default`): that shows what the warm-up could save, and is a change by itself where a
request may wait for a compile. It is not tried where `dynamic=False` keeps more sizes apart than
torch compiles.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html
- https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
- torch/_dynamo/eval_frame.py, `_callback_from_stance`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._starts import setting_line
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    compile_call,
    first_rank,
    percent,
    plural,
    rows,
    short,
)

CODE = "TV217"
NEEDS = frozenset({"served_calls", "regions"})
SEVERITIES = ("error", "warning", "info")
EXPLAINS = frozenset({"compile"})

STANCE = "eager_on_recompile"
#: Of the watched calls under the stance.
LEAST_EAGER = 2
INFO_SHARE = 0.05
WARNING_SHARE = 0.25
#: More sizes than torch compiles of one function, if none may be dynamic.
_TOO_MANY = 8
_NAMED = 3  # sizes in the evidence


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a compiled callable."""
    regions = {row["region_id"]: row for row in first_rank(rows(tables, "regions"))}
    wanted = rows(tables, "served_calls", user_stance=STANCE, after_modes=False)
    for row in first_rank(wanted):
        region, calls = regions.get(row["region_id"]), row["calls"]
        eager = row["eager_calls"] or 0
        if not region or not calls or eager < LEAST_EAGER or eager / calls < INFO_SHARE:
            continue
        place, made = setting_line(tables, STANCE), compile_call(region)
        at = f" ({short(place)})" if place else ""
        share = eager / calls
        sizes = row["eager_sizes"] or []
        static = region["dynamic"] == "False" and len(sizes) > _TOO_MANY
        named = "; ".join(sizes[:_NAMED]) + (" …" if len(sizes) > _NAMED else "")
        yield Finding(
            code=CODE,
            rule="rc-eager-on-recompile",
            severity="error" if eager == calls else "warning" if share >= WARNING_SHARE else "info",
            title=f"{eager} of {calls} calls of {region['name']} run in eager: {STANCE}{at}",
            explanation=(
                f'torch.compiler.set_stance("{STANCE}") forbids compiling. A call that fits none '
                "of the versions compiled before, such as one with sizes that the warm-up did not "
                "have, runs the original Python code."
            ),
            cost=Cost(about="what compiling saves in the calls that run in eager; not measured"),
            confidence="measured",
            location=place or made,
            also_at=(made,) if place and made else (),
            evidence=(
                Evidence(
                    f"{percent(share)} of {calls} watched calls ran no compiled code",
                    "served_calls",
                ),
                Evidence(
                    f"{plural(len(sizes), 'combination')} of sizes in them: {named}",
                    "served_calls",
                ),
            ),
            what_to_do=(
                "Before setting the stance, warm up with every size that comes. For many sizes, "
                "mark the dimension that differs as dynamic, or pad the inputs to a few sizes."
            ),
            snippet=Snippet(
                "python",
                "torch._dynamo.mark_dynamic(x, 1)  # the dimension that differs\n"
                "model(x)  # warm up\n"
                f'torch.compiler.set_stance("{STANCE}")',
            ),
            remedy=() if static else ("stance=default",),
        )

"""
## What it finds
A Python int on an nn.Module that changes from call to call and is read in compiled code
(`self.step += 1`).

## Why it costs
torch takes int attributes of modules for constants. Each new value is a whole compile, until the
recompile limit; from then on the module runs in eager.

## Evidence
Failed guards of the form `self.step == 0`, which torch itself marks as integer attributes of the
nn.Module.

A warning from two recompiles on; a single one is information.

## What to do
Count outside of `forward`, or keep the number in a buffer
(`self.register_buffer("step", torch.zeros((), dtype=torch.int64))`). Without touching the module:
`torch._dynamo.config.allow_unspec_int_on_nn_module = True`.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/config.py, `allow_unspec_int_on_nn_module`
- torch/_dynamo/guards.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _places, _recompiles
from traceview.rules._evidence import times
from traceview.rules.finding import Finding, Snippet
from traceview.tables import Tables

CODE = "TV203"
NEEDS = frozenset({"recompiles"})

#: One change (a warm-up flag, a mode switch) costs one compile; two are a counter.
FEWEST_RECOMPILES = 2
_PLAIN_NAME = re.compile(r"self\.[A-Za-z_]\w*")


def check(tables: Tables) -> Iterator[Finding]:
    """One finding an attribute of a module."""
    for cause in _recompiles.causes(tables):
        if cause.row["kind"] != "module_int":
            continue
        count = len(cause.rows)
        yield Finding(
            code=CODE,
            rule="rc-module-int-attr",
            severity="warning" if count >= FEWEST_RECOMPILES else "info",
            title=(
                f"{cause.source} changes from call to call and recompiled {cause.function} "
                f"{times(count)}"
            ),
            explanation=(
                f"{cause.source} is a Python int on the module; torch compiles its value in as a "
                f"constant and guards it. Values met: {cause.values()}. It is read at "
                f"{_places.short(cause.place())}."
            ),
            cost=cause.cost(tables),
            confidence="measured",
            location=_recompiles.place(tables, cause),
            evidence=cause.evidence(),
            what_to_do=(
                "Count outside of forward, or keep the number in a buffer tensor (an `if` or "
                "`min()` on it then becomes torch.where or torch.clamp). Where the module cannot "
                "be touched, set torch._dynamo.config.allow_unspec_int_on_nn_module = True."
            ),
            snippet=_snippet(cause),
        )


def _snippet(cause: _recompiles.Cause) -> Snippet:
    first = cause.row["old"] or ""
    if not (_PLAIN_NAME.fullmatch(cause.source) and first.isdecimal()):
        return Snippet("python", "torch._dynamo.config.allow_unspec_int_on_nn_module = True")
    name = cause.source.removeprefix("self.")
    return Snippet(
        "diff",
        f"- {cause.source} = {first}\n"
        f'+ self.register_buffer("{name}", torch.tensor({first}), persistent=False)',
    )

"""
## What it finds
A Python int on an nn.Module that is read in compiled code and changes from call to call (`self.step
+= 1`), or from one compiled instance to the next (`self.layer_idx`).

## Why it costs
torch treats int attributes of modules as constants. Every new value costs a whole compile, up to
the recompile limit. After that, the module runs in eager.

## Evidence
Failed guards of the form `self.step == 0`, which torch itself marks as integer attributes of the
nn.Module.

A warning where the recompiles took at least a second, and at least 5 % of the job where its length
is known, or where the function hit the recompile limit. Otherwise information. A single recompile
is information.

## What to do
Count outside `forward`, or keep the number in a buffer (`self.register_buffer("step",
torch.zeros((), dtype=torch.int64))`). Without touching the module:
`torch._dynamo.config.allow_unspec_int_on_nn_module = True`.

## Settings
- `fewest_recompiles`: fewer recompiles of one function are information.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/config.py, `allow_unspec_int_on_nn_module`
- torch/_dynamo/guards.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _recompiles
from traceview.rules._recompiles import FEWEST_RECOMPILES
from traceview.rules.kit import Finding, Tables, short

CODE = "TV203"
NEEDS = frozenset({"recompile_causes"})
SEVERITIES = ("warning", "info")

_SWITCH = "torch._dynamo.config.allow_unspec_int_on_nn_module = True"
_SWITCHED = f"set {_SWITCH}: it makes such ints symbolic, in all modules of the process."
_COUNTED = (
    "Count outside forward, or keep the number in a buffer tensor (an `if` or `min()` on it "
    f"then becomes torch.where or torch.clamp). If you cannot change the module, {_SWITCHED}"
)
_SHARED = (
    "Keep what the number decides in the instance (a buffer, a submodule chosen in __init__) and "
    f"leave the number out of forward; or compile the model that holds them all. Or {_SWITCHED}"
)
_CHILD = re.compile(r"\._modules\['(\w+)'\]")
_PLAIN_NAME = re.compile(r"self\.[A-Za-z_]\w*")


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding an attribute of a module."""
    for cause in _recompiles.causes(tables, "module_int"):
        at, name = _recompiles.spot(tables, cause), _CHILD.sub(r".\1", cause.source)
        # How many callables with this very code torch.compile was given.
        own = _recompiles.own_regions(tables, cause)
        instances = sum(max(1, row["compile_calls"] or 1) for row in own)

        paste = _SWITCH
        if instances <= 1 and _PLAIN_NAME.fullmatch(cause.source):
            buffer = cause.source.removeprefix("self.")
            paste = (
                f'self.register_buffer("{buffer}", torch.tensor(0), persistent=False)'
                "  # in __init__, instead of the int"
            )
        differs = "differs between instances" if instances > 1 else "changes between calls"
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-module-int-attr",
            title=f"{name} {differs}",
            explanation=(
                f"{name} is a Python int on the module; torch compiles its value in as a constant "
                f"and guards it.{cause.values_met()} It is read at {short(at.place)}."
                + (f" {instances} compiled instances share this code." if instances > 1 else "")
            ),
            at=at,
            cost=cause.cost(tables, but_one=instances > 1),
            info=cause.recompiles < fewest_recompiles,
            what_to_do=_SHARED if instances > 1 else _COUNTED,
            paste=paste,
            remedy=(_SWITCH.replace(" ", ""),),
        )

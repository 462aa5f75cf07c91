"""
## What it finds
A Python int on an nn.Module that is read in compiled code and changes from call to call
(`self.step += 1`), or from one compiled instance to the next (`self.layer_idx`).

## Why it costs
torch takes int attributes of modules for constants. Each new value is a whole compile, until the
recompile limit; from then on the module runs in eager.

## Evidence
Failed guards of the form `self.step == 0`, which torch itself marks as integer attributes of the
nn.Module.

A warning where compiling it again took a second or more, and 5 % of a job whose length is known, or
where the function met the recompile limit; else information. A single recompile is
information.

## What to do
Count outside of `forward`, or keep the number in a buffer
(`self.register_buffer("step", torch.zeros((), dtype=torch.int64))`). Without touching the module:
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

from traceview.rules import _places, _recompile_kinds, _recompiles
from traceview.rules._recompile_kinds import FEWEST_RECOMPILES
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Finding, Snippet
from traceview.tables import Tables
from traceview.words.numbers import times

CODE = "TV203"
NEEDS = frozenset({"recompiles"})

_SWITCHED = (
    "set torch._dynamo.config.allow_unspec_int_on_nn_module = True: it makes such ints symbolic, "
    "in all modules of the process."
)
_COUNTED = (
    "Count outside of forward, or keep the number in a buffer tensor (an `if` or `min()` on it "
    f"then becomes torch.where or torch.clamp). Where the module cannot be touched, {_SWITCHED}"
)
_SHARED = (
    "Keep what the number decides in the instance (a buffer, a submodule chosen in __init__) and "
    f"leave the number out of forward; or compile the model that holds them all. Or {_SWITCHED}"
)
_CHILD = re.compile(r"\._modules\['(\w+)'\]")
_PLAIN_NAME = re.compile(r"self\.[A-Za-z_]\w*")


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding an attribute of a module."""
    for cause in _recompile_kinds.causes(tables, "module_int"):
        yield _finding(tables, cause, fewest_recompiles)


def _finding(tables: Tables, cause: _recompiles.Cause, fewest_recompiles: float) -> Finding:
    at, name = _recompiles.spot(tables, cause), _attribute(cause)
    instances, count = _instances(tables, cause), _recompile_kinds.recompiles(cause)
    cost = cause.cost(tables, but_one=instances > 1)
    differs = "differs from instance to instance" if instances > 1 else "changes from call to call"
    return Finding(
        code=CODE,
        rule="rc-module-int-attr",
        severity=_recompile_kinds.severity(tables, cause, cost, fewest_recompiles),
        title=f"{name} {differs} and recompiled {cause.function} {times(count)}",
        explanation=(
            f"{name} is a Python int on the module; torch compiles its value in as a constant and "
            f"guards it. Values met: {cause.values()}. It is read at {_places.short(at.place)}."
            + (f" {instances} compiled instances share one code." if instances > 1 else "")
        ),
        cost=cost,
        confidence="measured",
        location=at.place,
        inside=at.inside,
        about=cause.about,
        evidence=cause.evidence(),
        what_to_do=_SHARED if instances > 1 else _COUNTED,
        snippet=_snippet(cause, instances),
    )


def _instances(tables: Tables, cause: _recompiles.Cause) -> int:
    """How many callables with this very code torch.compile was given."""
    frame = _recompiles.frame_of(cause.row)
    own = (row for row in first_rank(rows(tables, "regions")) if _target(row) == frame)
    return sum(max(1, row["compile_calls"] or 1) for row in own)


def _target(region: Row) -> _recompiles.Frame:
    return region["target_file"], region["target_line"]


def _attribute(cause: _recompiles.Cause) -> str:
    """``self.inner.step`` for what the guard calls ``self._modules['inner'].step``."""
    return _CHILD.sub(r".\1", cause.source)


def _snippet(cause: _recompiles.Cause, instances: int) -> Snippet:
    if instances > 1 or not _PLAIN_NAME.fullmatch(cause.source):
        return Snippet("python", "torch._dynamo.config.allow_unspec_int_on_nn_module = True")
    name = cause.source.removeprefix("self.")
    line = f'self.register_buffer("{name}", torch.tensor(0), persistent=False)'
    return Snippet("python", f"{line}  # in __init__, instead of the int")

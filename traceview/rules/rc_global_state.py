"""
## What it finds
A compiled function that is called under several states of torch: gradients on and off, inference
mode, autocast, `train()` and `eval()`, the number of threads, the default dtype or device.

## Why it costs
Code is compiled for the state in which it was traced. Every other combination costs a whole compile
of every compiled function below the call, up to the recompile limit. After that, new combinations
run in eager.

## Evidence
Recompiles whose deciding guard is on torch's own state ("GLOBAL_STATE changed: grad_mode"), on a
module's `training`, or on dispatch keys that only a mode adds and takes away (inference mode). A
tensor that inference mode created has other keys than one from outside, also within that mode.
State counts only where no variant for that state had been compiled before. The cost is measured for
a state that can be set once; for modes it is the most that can be saved.

A warning where the recompiles took at least a second, and at least 5 % of the job where its length
is known, or where the function hit the recompile limit. Otherwise information. A single recompile
is information: training and evaluation are two variants by nature. So are as many recompiles as
choices (gradients on or off, autocast, …): each takes one more variant, once. Only further ones,
such as `no_grad()` next to `inference_mode()`, can be avoided.

## What to do
Choose one state for each purpose and enter it around all calls: `torch.inference_mode()` or
`torch.no_grad()` but not both, one autocast block with one dtype. Create the arguments of all calls
in the same mode, those of a warm-up call, too. Set threads, default dtype and device once, before
the first call.

## Settings
- `fewest_recompiles`: fewer recompiles of one function are information.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/guards.py, `GuardBuilder.GLOBAL_STATE`
- https://github.com/pytorch/pytorch/issues/131975
- https://github.com/pytorch/pytorch/issues/100977
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from traceview.derive.facts.recompile_causes import keys_changed
from traceview.rules import _recompiles
from traceview.rules._recompiles import FEWEST_RECOMPILES
from traceview.rules.kit import Finding, Row, Spot, Tables
from traceview.words.text import listed

CODE = "TV209"
NEEDS = frozenset({"recompile_causes"})
SEVERITIES = ("warning", "info")
#: One rank alone that evaluates is what others wait for, not the state that it does it in.
FOLLOWS = frozenset({"dd-rank-skew"})

_INFERENCE = "inference mode"
#: This key alone tells a tensor that inference mode made from others under inference mode, and that
#: mode from no_grad where it made the tensor: the log doesn't say which.
_MADE_KEY = frozenset({"ADInplaceOrView"})
_INFERENCE_OR_MADE = "inference mode (of the call or of its tensors)"
_FUNC = "a torch.func transform"
#: As torch writes them (torch/csrc/dynamo/guards.cpp, GlobalStateGuard::reason) → in words.
_STATES = {
    "grad_mode": "grad mode",
    "torch_function": "the torch function mode",
    "torch_function_mode_stack": "the default device (or another torch function mode)",
    "default_device": "the default device",
    "default_dtype": "the default dtype",
    "deterministic_algorithms": "the choice of deterministic algorithms",
    "deterministic_algorithms_warn_only": "the choice of deterministic algorithms",
    "allow_tf32": "the precision of fp32 matrix products",
    "allow_fp16_reduce": "reduced precision in fp16 sums",
    "allow_bf16_reduce": "reduced precision in bf16 sums",
    "num_threads": "the number of threads",
    "saved_tensors_hooks": "hooks on saved tensors",
    "forward_ad": "forward-mode AD",
    "functorch": _FUNC,
}
_SET_ONCE = frozenset(
    name
    for key, name in _STATES.items()
    if key.startswith(("default", "deterministic", "allow", "num_threads", "torch_function_mode"))
)
_GRADIENTS = frozenset({"grad mode", _INFERENCE, _INFERENCE_OR_MADE})
#: What to do about these states.
_ADVICE = {
    "Use one mode for each purpose: gradients on for training, and for everything else "
    "either torch.no_grad() or torch.inference_mode(), entered around the loop of calls.": (
        _GRADIENTS
    ),
    "A tensor created in inference mode is compiled for separately: create the arguments in the "
    "same mode for every call, the warm-up included.": frozenset({_INFERENCE_OR_MADE}),
    "Enter autocast around all calls, with one dtype.": frozenset({"autocast"}),
    "Set it once, before the first compiled call.": _SET_ONCE,
}
_AUTOCAST = re.compile(r"autocast(?:\(\w+\)|_cache)?(?:_enabled|_dtype)?")


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a region: a state changes for all compiled functions below it."""
    for cause in _recompiles.causes(tables, "state"):
        count, cost = cause.recompiles, cause.cost(tables)
        states = list(dict.fromkeys(state for row in cause.rows for state in _states(row)))
        # Gradients on and off are one choice, however they are switched off.
        choices = {_GRADIENTS if state in _GRADIENTS else state for state in states}
        by_nature = count <= len(choices) and _SET_ONCE.isdisjoint(states)
        # The calls under another state; else the line, or the library's, that the log names.
        callers = _recompiles.callers(tables, cause)
        if not _SET_ONCE.issuperset(states):
            at_most = "; at most, since every state that is needed is compiled once"
            cost = replace(cost, about=cost.about + at_most)

        advice = (text for text, about in _ADVICE.items() if not about.isdisjoint(states))
        remedy = " ".join(advice) or "Call it in one state, or compile one function for each."
        if by_nature:
            which = "both states" if count == 1 else "all of them"
            remedy = (
                f"Nothing, where {which} are needed, as for training and evaluation: each is "
                "compiled once."
            )
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-global-state",
            title=f"{listed(states)} {'differ' if len(states) > 1 else 'differs'} between calls",
            explanation=(
                "Compiled code is valid for the state of torch in which it was traced. The calls "
                f"differ in {listed(states)}, and each combination is compiled separately."
            ),
            at=Spot(callers[0]) if callers else None,
            cost=cost,
            info=count < fewest_recompiles or by_nature,
            confidence="measured" if _SET_ONCE.issuperset(states) else "derived",
            also_at=tuple(callers[1:]),
            evidence=_recompiles.evidence(tables, cause),
            what_to_do=remedy,
        )


def _states(row: Row) -> Iterator[str]:
    """What differed, in words."""
    source = row["source_name"] or ""
    if row["kind"] == "dispatch_keys":
        keys = keys_changed(row["old"], row["new"])
        if any(key.startswith("Autocast") for key in keys):
            yield "autocast"
        elif any(key.startswith("FuncTorch") for key in keys):
            yield _FUNC
        else:
            yield _INFERENCE_OR_MADE if keys == _MADE_KEY else _INFERENCE
    elif source.endswith(".training"):
        yield "train() or eval()"
    else:
        for name in source.split() or ["torch's state"]:
            yield "autocast" if _AUTOCAST.fullmatch(name) else _STATES.get(name, name)

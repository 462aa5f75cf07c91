"""Weights whose gradients every backward adds up, and that no optimizer trains.

A frozen network that still says ``requires_grad`` gets gradients in each step. Nothing uses or
resets them, so each backward adds to them in place, and a gradient's version counts that. They are
looked at once, after a profiler window: one ``untrained_weight`` event each.
"""

from __future__ import annotations

import gc
from typing import Any

from .recorder import Recorder

#: Enough to tell a gradient that is never reset from one that is accumulated over a few steps.
ENOUGH_STEPS = 24
FEWEST_ADDITIONS = 16
MOST_WEIGHTS = 4096
_COMPILED = "_orig_mod."  # within the module that torch.compile gives back


def write_untrained(torch: Any, recorder: Recorder) -> None:
    """Nothing where no optimizer is alive: then it is not known what is trained."""
    try:
        modules, trained = [], set[int]()
        for each in gc.get_objects():
            if issubclass(type(each), torch.nn.Module):
                modules.append(each)
            elif issubclass(type(each), torch.optim.Optimizer):
                groups = getattr(each, "param_groups", ())
                trained |= {id(weight) for group in groups for weight in group["params"]}
        if not trained:
            return
        inner = {id(part) for module in modules for part in module._modules.values()}
        names: dict[str, bool] = {}
        found: dict[str, int] = {}
        for root in (module for module in modules if id(module) not in inner):
            for full_name, weight in root.named_parameters():
                name = full_name.replace(_COMPILED, "")
                names[name] = names.get(name, False) or id(weight) in trained
                # What a script changes by hand, in place, is trained as well.
                still = weight.requires_grad and weight._version < FEWEST_ADDITIONS
                if still and weight.grad is not None and weight.grad._version >= FEWEST_ADDITIONS:
                    found[name] = weight.grad._version
    except Exception as error:  # noqa: BLE001 - the user's objects may do anything
        recorder.note("weights that nothing trains", error)
        return
    untrained = [(name, added) for name, added in found.items() if not names[name]]
    for name, additions in untrained[:MOST_WEIGHTS]:
        recorder.write("untrained_weight", name=name, additions=additions)

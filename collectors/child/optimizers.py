"""Optimizer steps, seen through torch's global post-step hook."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def on_optimizer_step(torch: Any, act: Callable[[Any], None]) -> None:
    """Call ``act(optimizer)`` after every step that is not traced into a graph.

    Inside a compiled function Dynamo traces the hook: ``is_compiling()`` is a constant there, so
    the hook ends before anything of ours and adds neither a graph break nor a graph. What remains
    (torch 2.13): after a graph break inside a step, Dynamo keeps the empty rest of the step as
    guarded code where without a hook it would skip that frame.
    """
    is_compiling = torch.compiler.is_compiling

    def hook(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if is_compiling():
            return
        act(optimizer)

    # `torch.optim.optimizer` as an attribute is shadowed; the module is in sys.modules
    module = sys.modules.get("torch.optim.optimizer")
    if module is not None:
        module.register_optimizer_step_post_hook(hook)

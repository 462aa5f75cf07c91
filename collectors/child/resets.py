"""torch.compiler.reset(), watched: where the script throws away what has been compiled."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from typing import Any

from .parts import Parts

MOST_EVENTS = 1000  # a script that resets on every call is known for it by then


def watch_resets(parts: Parts, step: Callable[[], int]) -> None:
    """Write one ``reset`` event a call. torch drops our callbacks there, so listen again.

    ``torch.compiler.reset`` calls ``torch._dynamo.reset``, by its name in that module.
    """
    dynamo: Any = sys.modules.get("torch._dynamo")
    reset = getattr(dynamo, "reset", None)
    if reset is None:
        return
    events = 0

    @functools.wraps(reset)
    def watched() -> Any:
        nonlocal events
        result = reset()
        if parts.control.off:
            return result
        parts.compiles.listen()
        events += 1
        if events <= MOST_EVENTS:
            site = parts.frames.call_site(sys._getframe(1)) or {}
            parts.sources.keep(site.get("file"))
            parts.recorder.write("reset", **site, started_us=time.time_ns() / 1000, step=step())
        return result

    dynamo.reset = watched

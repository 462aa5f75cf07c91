"""The user's line behind each guard, which torch below 2.9 notes only while it logs guards."""

from __future__ import annotations

import functools
import re
import sys
from typing import Any

#: From here on ``GuardsSet.add`` (torch/_guards.py) notes it by itself.
_NOTED_SINCE = (2, 9)


def keep_guard_lines(torch: Any) -> None:
    """Let older versions note it too: recompiles are told with that line behind the guard."""
    release = re.match(r"(\d+)\.(\d+)", torch.__version__)
    guards: Any = sys.modules.get("torch._guards")
    if guards is None or release is None or (int(release[1]), int(release[2])) >= _NOTED_SINCE:
        return
    add = guards.GuardsSet.add

    @functools.wraps(add)
    def adding(self: Any, guard: Any, **options: Any) -> None:
        if guard.user_stack is None and guard not in self.inner:
            guard.user_stack = guards.TracingContext.extract_stack()
        add(self, guard, **options)

    guards.GuardsSet.add = adding

"""``inductor_provenance_tracking_kernel_stack_traces``: ``{"kernel:handle": [user stack, …]}``."""

from __future__ import annotations

from typing import Any

import msgspec

from traceview.torchtext.frames import is_user_frame, parse_traceback, torch_roots
from traceview.torchtext.remembered import remembered


class Traces(msgspec.Struct, array_like=True, tag="traces"):
    """The user's lines of kernels by name, and the innermost ones of calls by handle."""

    by_kernel: dict[str, list[str]] = {}
    by_handle: dict[str, list[str]] = {}


def traces(stacks_of: dict[str, Any]) -> Traces:
    """The user's lines that the decoded payload quotes."""
    kernels: dict[str, dict[str, None]] = {}
    found = Traces()
    for handle, stacks in stacks_of.items():
        lines = kernels.setdefault(handle.rpartition(":")[0] or handle, {})
        innermost: dict[str, None] = {}
        for stack in stacks if isinstance(stacks, list) else ():
            quoted = user_lines(str(stack))
            lines.update(dict.fromkeys(quoted))
            innermost.update(dict.fromkeys(quoted[:1]))
        found.by_handle[handle] = list(innermost)
    found.by_kernel.update((name, list(lines)) for name, lines in kernels.items())
    return found


@remembered(most=2_000)  # many kernels of a model come from one line of it
def user_lines(stack: str) -> tuple[str, ...]:
    """``file:line`` of the user's own frames in a quoted stack, innermost first."""
    frames = parse_traceback(stack)
    roots = torch_roots(frame.file for frame in frames)
    return tuple(f"{f.file}:{f.line}" for f in reversed(frames) if is_user_frame(f, roots))

"""What a payload alone shows: pure functions of its text, which need neither state nor polars.

So they may run where the payload is cut, in the other process of a large file (``parse.cutting``).

    guard_tree    the leaves of a tree of guards
    metrics       CompilationMetrics and chromium events
    module        the kernels and calls of a generated module, the user's lines of kernels
    readers       which kind of record has which of them
"""

from __future__ import annotations

from traceview import limits

CUT_MARK = "\n[cut here: the text goes on]"


def clipped(payload: bytes, errors: str = "strict", limit: int | None = None) -> str:
    """The payload decoded, cut at ``limit`` with a mark; UnicodeDecodeError if it is no UTF-8."""
    limit = limits.now.text if limit is None else limit
    if len(payload) <= limit:
        return payload.decode(errors=errors)
    return payload[:limit].decode(errors="replace") + CUT_MARK

"""What a payload alone shows: pure functions of its text, which need neither state nor polars.

So they may run where the payload is cut, in the other process of a large file (``parse.cutting``).

    guard_tree    the leaves of a tree of guards
    metrics       CompilationMetrics and chromium events
    module        the kernels and calls of a generated module, the user's lines of kernels
    readers       which kind of record has which of them
"""

from __future__ import annotations

TEXT_LIMIT = 1_000_000
#: Guards stand one a line of some 350 characters: as many as one compile may have.
TREE_LIMIT = 20_000_000
CUT_MARK = "\n[cut here: the text goes on]"


def clipped(payload: bytes, errors: str = "strict", limit: int = TEXT_LIMIT) -> str:
    """The payload decoded, cut at ``limit`` with a mark; UnicodeDecodeError if it is no UTF-8."""
    if len(payload) <= limit:
        return payload.decode(errors=errors)
    return payload[:limit].decode(errors="replace") + CUT_MARK

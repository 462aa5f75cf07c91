"""A payload as text."""

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

"""A payload as text."""

from __future__ import annotations

TEXT_LIMIT = 1_000_000
CUT_MARK = "\n[cut here: the text goes on]"


def clipped(payload: bytes, errors: str = "strict") -> str:
    """The payload decoded, cut at 1 MB with a mark; UnicodeDecodeError where it is no UTF-8."""
    if len(payload) <= TEXT_LIMIT:
        return payload.decode(errors=errors)
    return payload[:TEXT_LIMIT].decode(errors="replace") + CUT_MARK

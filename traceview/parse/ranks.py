"""The rank that the name of a log tells."""

from __future__ import annotations

import re

_RANK = re.compile(r"(?:^|[/_.\-])rank[_\-]?(\d{1,6})(?=[/_.\-]|$)", re.IGNORECASE)


def rank_in_name(name: str) -> int | None:
    """The rank that a file's name, or the nearest folder's, tells."""
    named = _RANK.findall(name)
    return int(named[-1]) if named else None

"""Links that a log can't turn against the reader: relative files, and torch's own pages."""

from __future__ import annotations

import re
from urllib.parse import quote

_GRAPH_BREAK_PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/{}.html"
_GRAPH_BREAK_ID = re.compile(r"GB(\d{4})", re.IGNORECASE)


def relative(path: str | None) -> str | None:
    """A link to a file in the run folder, beside the report; None if ``path`` leaves the folder."""
    if not path or path.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", path):
        return None
    if len(path) > 1000:
        return None
    # The colon of "javascript:" is quoted too, and "./" keeps "//host" from naming a host.
    return "./" + quote(path, safe="/", errors="replace")


def graph_break(gb_id: str | None) -> str | None:
    """torch's page about a kind of graph break; None for what is not one of its ids."""
    match = _GRAPH_BREAK_ID.fullmatch(gb_id or "")
    return _GRAPH_BREAK_PAGE.format(f"gb{match.group(1)}") if match else None

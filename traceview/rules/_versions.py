"""The torch that ran: advice depends on it."""

from __future__ import annotations

import re

from traceview.rules._rows import rows
from traceview.tables import Tables

_RELEASE = re.compile(r"(\d+)\.(\d+)")


def torch_version(tables: Tables) -> tuple[int, int] | None:
    """(major, minor) of the torch that ran, None where it was not recorded."""
    for row in rows(tables, "runs"):
        if found := _RELEASE.match(row["torch_version"] or ""):
            return int(found[1]), int(found[2])
    return None

"""The torch that ran: advice depends on it."""

from __future__ import annotations

import re

from traceview.derive.processes import logged_versions
from traceview.rules._rows import rows
from traceview.tables import Tables

_RELEASE = re.compile(r"(\d+)\.(\d+)")


def torch_version(tables: Tables) -> tuple[int, int] | None:
    """(major, minor) of the torch that ran, None where it was not recorded."""
    told = [row["torch_version"] for row in rows(tables, "runs")]
    for text in (*told, logged_versions(tables).get("torch")):
        if found := _RELEASE.match(text or ""):
            return int(found[1]), int(found[2])
    return None


def before(tables: Tables, release: tuple[int, int]) -> bool:
    """Whether an older torch than ``release`` ran, as far as it is known."""
    version = torch_version(tables)
    return version is not None and version < release


def recompile_limit(tables: Tables) -> str:
    """The setting that the torch which ran calls so; 2.6 has its old name alone."""
    name = "cache_size_limit" if before(tables, (2, 7)) else "recompile_limit"
    return f"torch._dynamo.config.{name}"

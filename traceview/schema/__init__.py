"""Every table that traceview makes: its columns, their dtypes, units and meaning, declared once.

The unit is in the name (``duration_us``, ``peak_bytes``); null means "not recorded" and is never
replaced by 0 or -1. Every table starts with ``pass`` and ``rank`` (see ``HEAD``).
"""

from __future__ import annotations

from traceview.schema import (
    collected,
    compiler,
    derived,
    explained,
    facts,
    postmortem,
    profile,
)
from traceview.schema.columns import TableSpec

__all__ = ["TableSpec", "all_tables"]

_MODULES = (collected, compiler, profile, derived, explained, facts, postmortem)
_TABLES = {
    spec.name: spec
    for module in _MODULES
    for spec in vars(module).values()
    if isinstance(spec, TableSpec)
}


def all_tables() -> dict[str, TableSpec]:
    """Every declared table by name, in the order in which ``traceview tables`` lists them."""
    return _TABLES

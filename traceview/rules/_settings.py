"""Settings of torch's: where the script gives them, and what a torch.compile call is given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from traceview.rules import _places
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Location
from traceview.tables import Tables


def place(tables: Tables, name: str, region: Row | None) -> Location | None:
    """The first line of the user's that names the setting, else the torch.compile call."""
    found = first_rank(rows(tables, "setting_sites", name=name))
    if found and found[0]["line"] is not None:
        return Location(found[0]["file"], found[0]["line"], found[0]["function"])
    return _places.compile_call(region) if region else None


def options(region: Row) -> dict[str, Any]:
    """``options=`` of a torch.compile call; none where it has none, or they are no such thing."""
    try:
        found = json.loads(region["options"] or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def option(tables: Tables, wanted: Mapping[str, str]) -> Row | None:
    """The first of ``options=`` that has the wanted value, as a row of environment has it."""
    for region in first_rank(rows(tables, "regions")):
        for name, value in options(region).items():
            if name in wanted and wanted[name] == str(value):
                return {"name": name, "value": str(value)}
    return None

"""What rules about several ranks share: how many there are, and whose call a compile was in."""

from __future__ import annotations

from traceview.rules import _places
from traceview.rules._rows import Row, first_rank, rows
from traceview.tables import Tables


def world_size(tables: Tables) -> int | None:
    """Processes of the job as torch.distributed counts them; None where it was not recorded."""
    found = first_rank(rows(tables, "environment", section="torch", name="world_size"))
    value = found[0]["value"] if found else None
    return int(value) if value and value.isdecimal() else None


def region(tables: Tables, compile_: Row) -> Row | None:
    """The region that a row of ``compiles`` belongs to."""
    number = _places.owner(tables, compile_["compile_key"])
    found = (
        row
        for row in rows(tables, "regions")
        if row["pid"] == compile_["pid"] and row["region_id"] == number
    )
    return next(found, None)

"""Which break has a step enter the compiled code that it enters.

Behind a break the rest of the function is a graph of its own, and what a function calls at a line
that breaks, or after Dynamo gave it up, is compiled by itself: each is entered at every call.
"""

from __future__ import annotations

from collections.abc import Sequence

from traceview.rules import _breaks, _places, _recompiles
from traceview.rules._rows import Row, first_rank, rows
from traceview.tables import Tables
from traceview.torchtext.frames import resumed

_ENTERED = "pregraph_bytecode"


def shares(tables: Tables, sites: Sequence[_breaks.Site]) -> list[float]:
    """For each of ``sites`` its part, 0 to 1, of the entries of a step that breaks caused.

    All have the same part where no entry tells.
    """
    entries, targets, owners = [0.0] * len(sites), _targets(tables), tables.once(_places.Owners)
    behind = [owners.behind(*site.rows) for site in sites]
    for code, calls in _entered(tables):
        if resumed(code["co_name"]):
            found = [n for n, codes in enumerate(behind) if codes & _places.about(code)]
        else:
            found = [] if _recompiles.frame_of(code) in targets else _callers(code, sites)
        for index in found:
            entries[index] += calls / len(found)
    total = sum(entries)
    return [part / total if total else 1 / len(sites) for part in entries]


def _entered(tables: Tables) -> list[tuple[Row, float]]:
    """Compiled code that a step enters, as a row of ``compiles``, and how often."""
    forward = (
        row for row in first_rank(rows(tables, "compiles")) if row["is_forward"] is not False
    )
    compiled = {row["compile_id"]: row for row in forward}
    found = first_rank(rows(tables, "call_path", part=_ENTERED))
    known = ((compiled.get(row["compile_id"]), row["calls"] or 0.0) for row in found)
    return [(row, calls) for row, calls in known if row]


def _callers(code: Row, sites: Sequence[_breaks.Site]) -> list[int]:
    """Indices of the sites that call ``code``, by its stack; else of those that gave a frame up."""
    lines = {(frame.file, frame.line) for frame in _places.stack(code)[:-1]}
    calling = [n for n, site in enumerate(sites) if _line(site) in lines]
    return calling or [n for n, site in enumerate(sites) if site.skipped]


def _targets(tables: Tables) -> set[_recompiles.Frame]:
    """What torch.compile was given: it is entered anyway."""
    return {(row["target_file"], row["target_line"]) for row in rows(tables, "regions")}


def _line(site: _breaks.Site) -> tuple[str, int] | None:
    return (site.place.file, site.place.line) if site.place else None

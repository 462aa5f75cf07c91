"""Where in the user's own code what changed is read, and where the calls came from."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from traceview.rules import _recompiles
from traceview.rules._places import Owners, Spot
from traceview.rules._recompiles import Cause
from traceview.rules._rows import Row, frame, rows
from traceview.rules.finding import Location
from traceview.tables import Tables
from traceview.torchtext.frames import StackFrame

_LOCAL = r"\bL\[\s*['\"](.*?)['\"]\s*\]"


def reading(tables: Tables, cause: Cause) -> Spot:
    """The line that reads what changed; else the function, or the call that led to a library's.

    Guards on tensors and dicts name no line when they fail; torch's tree of the guards does. An
    argument that is first read in another function than the compiled one is the caller's.
    """
    named = any(row["user_line"] is not None for row in cause.rows)
    found = None if named else _in_guards(tables, cause)
    if found is None:
        return _recompiles.spot(tables, cause)
    if cause.source.isidentifier() and _is_elsewhere(found, cause.row):
        return Spot(next(iter(callers(tables, cause)), found), found)
    return Spot(found)


def callers(tables: Tables, cause: Cause) -> list[Location]:
    """The user's own lines that called into the compiles of ``cause``, each once, in order."""
    compiles = {row["compile_key"]: row for row in reversed(rows(tables, "compiles"))}
    owners = tables.once(Owners)
    again = (compiles.get(row["compile_key"]) for row in cause.rows)
    places = (owners.caller(row) for row in again if row)
    return list(dict.fromkeys(place for place in places if place))


def _is_elsewhere(place: Location, row: Row) -> bool:
    """Whether a line surely lies outside of the compiled function: its end is not recorded."""
    first = row["co_firstlineno"]
    return place.file != row["co_filename"] or (first is not None and place.line < first)


def _in_guards(tables: Tables, cause: Cause) -> Location | None:
    """The user's own line of a guard on the very source, on what is inside of it, or around it.

    A dictionary that is empty has nothing inside yet: variants that came later tell more.
    """
    found = sorted(
        (distance, variant, number, file, line)
        for variant, row in enumerate(cause.rows)
        for number, (name, file, line) in enumerate(_guards(tables, row))
        if (distance := _distance(row["source_name"], name)) is not None
    )
    places = (_whole(tables, cause.row, (file, line)) for *_, file, line in found)
    return next(filter(None, places), None)


def _guards(tables: Tables, row: Row) -> Iterator[tuple[str, str, int]]:
    """Source and line of the guards of the variant that did not do."""
    source, failed, key = row["source_name"], row["failed_compile_id"], row["compile_key"]
    if not (source and failed and key):
        return
    entry = key.removesuffix(row["compile_id"]) + failed
    guards = frame(tables, "guards", compile_key=entry).with_columns(
        pl.col("source_name").str.replace_all(_LOCAL, "${1}")
    )
    guards = guards.drop_nulls(["source_name", "file", "line"])
    columns = guards.select("source_name", "file", "line").unique(maintain_order=True)
    yield from columns.iter_rows()


def _distance(source: str, name: str) -> int | None:
    """0: the same; 1: keys of it; 2: inside (``cache['a']`` of ``cache``); more: around it."""
    if name == source:
        return 0
    if name.startswith(f"list(dict.keys({source}))"):  # where it is gone through
        return 1
    if name.startswith((f"{source}[", f"{source}.")):
        return 2
    around = source.startswith((f"{name}[", f"{name}."))
    return 2 + len(source) - len(name) if around else None


def _whole(tables: Tables, row: Row, at: tuple[str, int]) -> Location | None:
    """A line of the user's own, None if it is a library's."""
    file = _recompiles.whole_path(at[0], (row["co_filename"], *tables["sources"]["file"]))
    own = file is not None and tables.once(Owners).owns(StackFrame(file, at[1], None))
    return Location(file, at[1]) if file and own else None

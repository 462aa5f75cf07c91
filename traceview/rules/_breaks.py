"""Graph breaks, gathered by the line that they happen at."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from traceview.rules import _places, _strict
from traceview.rules._evidence import MOST_EVIDENCE, from_row
from traceview.rules._rows import Row, first, rows
from traceview.rules.finding import Evidence, Location
from traceview.tables import Tables
from traceview.words.numbers import times
from traceview.words.text import shorten

#: torch's ids (torch/_dynamo/graph_break_registry.json): Tensor.item() and what calls it.
ITEM = frozenset({"GB0124"})
#: A "data dependent operator": it gives Python a value of a tensor's.
VALUE_OPERATOR = "GB0033"
#: The one that is ``tolist`` or a NumPy scalar on its way to Python; others answer a question.
_SCALAR = "_local_scalar_dense"
DATA_DEPENDENT = frozenset({"GB0170", "GB0035", "GB0034"})
LOGGING = frozenset({"GB0291", "GB0296"})
#: Builtins that Dynamo cannot trace because they talk to the outside: GB0059 names them.
_IO_BUILTIN = re.compile(
    r"builtin operator `?(print|open|input|breakpoint)\b|builtin: (print|open)\b"
)
_IO_CALL = re.compile(
    r"\b(warnings\.warn|module: _warnings|logging|LoggingLogger|builtins\.(print|open|input)|_io\.)"
)

Kind = Callable[[Row], bool]


def is_item(row: Row) -> bool:
    """A tensor's value is turned into a Python number."""
    if row["gb_id"] == VALUE_OPERATOR:
        return _reads_scalar(row)
    return row["gb_id"] in ITEM or "Tensor.item" in (row["gb_type"] or "")


def is_data_dependent(row: Row) -> bool:
    """Control flow depends on a tensor's value, or ``torch.equal`` asks for it."""
    if row["gb_id"] == VALUE_OPERATOR:
        return not _reads_scalar(row)
    kind = row["gb_type"] or ""
    return row["gb_id"] in DATA_DEPENDENT or kind.startswith("Data-dependent")


def _reads_scalar(row: Row) -> bool:
    return _SCALAR in f"{row['gb_type']} {row['context']}"


def is_io(row: Row) -> bool:
    """print, open, logging, warnings: something outside the graph."""
    if row["gb_id"] in LOGGING:
        return True
    text = " ".join(filter(None, (row["gb_type"], row["explanation"], row["context"])))
    return bool(_IO_BUILTIN.search(text) or _IO_CALL.search(text))


class Site(msgspec.Struct, frozen=True):
    """One line where graphs break: its rows (never empty) and its place, where recorded.

    ``inside``: the library's line, where the break is in code that the user's line only calls.
    ``about``: the functions whose graphs break there.
    """

    rows: tuple[Row, ...]
    place: Location | None
    inside: Location | None = None
    about: frozenset[str] = frozenset()

    @property
    def source(self) -> str | None:
        """The user's own line, as the log quotes it."""
        quoted = (_places.source_text(row, self.place) for row in self.rows if self.place)
        return next(filter(None, quoted), None)

    @property
    def broken(self) -> str | None:
        """The line that breaks, be it a library's."""
        return next(filter(None, map(_places.source_text, self.rows)), None)

    @property
    def strict(self) -> bool:
        """Whether it is an error, since fullgraph=True allows no break."""
        return all(row["origin"] == _strict.ORIGIN for row in self.rows)

    @property
    def skipped(self) -> bool:
        return any(row["frame_skipped"] for row in self.rows)

    def evidence(self) -> tuple[Evidence, ...]:
        """One row a different message; how often it stands in the log."""
        seen: dict[str, list[Row]] = {}
        for row in self.rows:
            seen.setdefault(shorten(row["gb_type"] or row["reason"]), []).append(row)
        return tuple(
            from_row(_said(message, found), "graph_breaks", found[0])
            for message, found in list(seen.items())[:MOST_EVIDENCE]
        )


def sites(tables: Tables, kind: Kind = lambda _: True) -> Iterator[Site]:
    """The user's own lines where breaks of ``kind`` happened; torch's own breaks are left out."""
    owners = tables.once(_places.Owners)
    found: dict[tuple[str, int] | None, list[tuple[Row, _places.Spot]]] = {}
    for row, spot in tables.once(_spots):
        if kind(row):
            key = (spot.place.file, spot.place.line) if spot.place else None
            found.setdefault(key, []).append((row, spot))
    for group in found.values():
        spot = group[0][1]
        own = tuple(row for row, _ in group)
        yield Site(own, spot.place, spot.inside, owners.about(*own))


def _spots(tables: Tables) -> list[tuple[Row, _places.Spot]]:
    """Each break with its line in the user's own code; the function, where no line is recorded."""
    owners = tables.once(_places.Owners)
    compiles = {row["compile_key"]: row for row in rows(tables, "compiles")}
    found: list[tuple[Row, _places.Spot]] = []
    for row in (*rows(tables, "graph_breaks"), *_strict.breaks(tables)):
        if owners.is_torchs(row):
            continue
        spot, code = owners.spot(row), compiles.get(row["compile_key"])
        found.append((row, spot if spot.place or code is None else owners.code(code)))
    return found


def resumable(tables: Tables, kind: Kind = lambda _: True) -> Iterator[Site]:
    """Sites of ``kind`` where Python resumed after the graph (skipped frames: another rule)."""
    return (site for site in sites(tables, kind) if not site.skipped)


def effect(tables: Tables, site: Site) -> str:
    """What a break does to the graph: there is a second part only where more ran compiled."""
    if site.strict:
        return "is an error with fullgraph=True"
    counts = first(tables, "step_counts", stance="compiled")
    alone = counts is not None and counts["gap_ms"] == 0
    return "ends the graph" if alone else "cuts the graph in two"


def _said(message: str, found: list[Row]) -> str:
    gb_id = next(filter(None, (row["gb_id"] for row in found)), None)
    name = f"{gb_id}: " if gb_id else ""
    return f"{name}{message} ({times(len(found))} in the log)"

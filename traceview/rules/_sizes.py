"""Recompiles for a size, each with the one reason why the code that there was did not do.

The size is 0 or 1; it goes with a parameter's, which is never symbolic; symbolic sizes are switched
off; compiled code decided on it; or it changed for the first time, and torch makes it symbolic.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from traceview.rules import _places, _recompiles
from traceview.rules._rows import Row, first_rank, frame, rows
from traceview.tables import Tables

Reason = Literal["zero_one", "parameter", "static", "pinned", "first_change"]

#: torch's switch for symbolic sizes after a change (torch/_dynamo/config.py).
SWITCH = "automatic_dynamic_shapes"
#: The guard that keeps sizes of 0 and 1 out of a symbolic graph.
_FROM_TWO = re.compile(r"2 <= \S+\.size\(\)\[\d+\]")
_PARAMETER = re.compile(r"check_tensor\(.*?, (?:\w+\.)*Parameter, .*?size=\[(?P<size>[\d, ]*)\]")


def of_reason(tables: Tables, *reasons: Reason) -> Iterator[_recompiles.Cause]:
    """One cause a function and source of the recompiles with these reasons, in log order."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row, reason in tables.once(Sizes).rows:
        if reason in reasons:
            found.setdefault((*_recompiles.frame_of(row), row["source_name"]), []).append(row)
    for group in found.values():
        yield _recompiles.Cause(tuple(group))


class Sizes:
    """The recompiles for a size in one run; ``rows`` has each with its reason."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @cached_property
    def rows(self) -> list[tuple[Row, Reason]]:
        sized = [
            row
            for row in first_rank(_recompiles.deciding(self._tables))
            if row["kind"] in ("size", "shape_guard")
        ]
        met = Counter(
            _dimension(row) for row in sized if row["kind"] == "size" and not is_zero_one(row)
        )
        return [(row, self._reason(row, met[_dimension(row)])) for row in sized]

    def _reason(self, row: Row, times: int) -> Reason:
        if is_zero_one(row):
            return "zero_one"
        if row["kind"] == "size" and self._with_parameter(row):
            return "parameter"
        if row["kind"] == "size" and (self.switched_off or self.static_region(row)):
            return "static"
        if row["kind"] == "shape_guard" or times > 1 or self.pins(row):
            return "pinned"
        return "first_change"

    def pins(self, row: Row) -> list[Row]:
        """Where the size was set to one value, in the code that did not do or the new code."""
        process = (row["compile_key"] or "").rpartition(":")[0]
        keys = (f"{process}:{row['failed_compile_id']}", row["compile_key"])
        size = f"{row['source_name']}.size()[{row['dim']}]"
        found = (pin for key in keys for pin in self._pinned.get(key, ()))
        return [pin for pin in found if size in _recompiles.plain(pin["source_name"])]

    def static_region(self, row: Row) -> Row | None:
        """The torch.compile call with dynamic=False that the recompiled function belongs to."""
        region = _places.region_of(self._tables, row["compile_key"])
        return region if region is not None and region["dynamic"] == "False" else None

    @cached_property
    def switched_off(self) -> bool:
        """Whether the script turned automatic dynamic shapes off."""
        return any(
            row["value"] == "False" for row in rows(self._tables, "environment", name=SWITCH)
        )

    def _with_parameter(self, row: Row) -> bool:
        own = _recompiles.Cause((row,))
        return own.on_parameter or _recompiles.frame_of(row) in self.parameters

    def of_instances(self, cause: _recompiles.Cause) -> bool:
        """Whether all those parameters are modules' own: then it is the instances that differ."""
        named = {
            row["source_name"] or "" for row in cause.rows if _recompiles.Cause((row,)).on_parameter
        }
        named |= self.parameters.get(_recompiles.frame_of(cause.row), set())
        return all("_parameters[" in source for source in named)

    @cached_property
    def _pinned(self) -> dict[str, list[Row]]:
        """Symbolic sizes that were set to one value, by compile."""
        found: dict[str, list[Row]] = {}
        for row in rows(self._tables, "symbols", event="specialize"):
            found.setdefault(row["compile_key"], []).append(row)
        return found

    @cached_property
    def parameters(self) -> dict[_recompiles.Frame, set[str]]:
        """By function the parameters that two of its variants guard with different sizes."""
        compiles = rows(self._tables, "compiles")
        frames = {row["compile_key"]: _recompiles.frame_of(row) for row in compiles}
        sizes: dict[tuple[_recompiles.Frame, str], set[str]] = {}
        guards = frame(self._tables, "guards", kind="TENSOR_MATCH")
        told = guards.select("compile_key", "source_name", "guard").unique(maintain_order=True)
        for key, source, guard in told.iter_rows():
            match = _PARAMETER.search(guard or "")
            if match and (code := frames.get(key)):
                sizes.setdefault((code, source), set()).add(match["size"])
        found: dict[_recompiles.Frame, set[str]] = {}
        for (code, source), met in sizes.items():
            if len(met) > 1:
                found.setdefault(code, set()).add(source)
        return found


def is_zero_one(row: Row) -> bool:
    """Whether what came has a size of 0 or 1, for which torch always compiles by itself."""
    if row["kind"] == "shape_guard":
        return _FROM_TWO.match(row["guard"] or "") is not None
    return row["kind"] == "size" and row["new"] in ("0", "1")


def _dimension(row: Row) -> tuple[object, ...]:
    """The size of one tensor in one function, between resets of one process."""
    process = (row["compile_key"] or "").rpartition(":")[0]
    return process, *_recompiles.frame_of(row), row["source_name"], row["dim"]

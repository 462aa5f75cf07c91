"""Recompiles, gathered by the function that was compiled again and by what changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from traceview.derive.compile_costs import assign_regions
from traceview.rules import _costs, _places
from traceview.rules._evidence import MOST_EVIDENCE, from_row, short, times
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Location
from traceview.tables import Tables

TENSOR_RATE = (
    "Give the optimizer its learning rate as a tensor; schedulers then change it in place."
)

Frame = tuple[str | None, int | None]

#: What Dynamo calls the code behind a graph break (torch/_dynamo/resume_execution.py).
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)")
#: And a value that was on Python's stack at the break.
_ON_STACK = re.compile(r"___stack\d+")
_GLOBAL = re.compile(r"^G\['(\w+)'\]")
#: A string, a boolean or None as a guard shows it.
_CHOICE = re.compile(r"""(['"]).*\1|True|False|None""", re.DOTALL)


def function_name(co_name: str | None) -> str:
    """``forward()``; code behind a graph break as ``the rest of forward() after line 15``."""
    if not co_name:
        return "a function"
    resumed = _RESUMED.fullmatch(co_name)
    return f"the rest of {resumed[1]}() after line {resumed[2]}" if resumed else f"{co_name}()"


def frame_of(row: Row) -> Frame:
    """The code object of a row of ``compiles`` or ``recompiles``."""
    return row["co_filename"], row["co_firstlineno"]


def opening(name: str) -> str:
    """``name`` to begin a sentence with: words get a capital letter, code stays as it is."""
    return name[:1].upper() + name[1:] if name.startswith(("the ", "dimension ")) else name


@dataclass(frozen=True, slots=True)
class Cause:
    """All recompiles of one function that one source decided (rows: never empty, in log order)."""

    rows: tuple[Row, ...]

    @property
    def row(self) -> Row:
        return self.rows[0]

    @property
    def source(self) -> str:
        name = self.row["source_name"] or "a guard"
        if _ON_STACK.fullmatch(name):
            return "the value read before a graph break"
        return _GLOBAL.sub(r"the global \1", name)

    @property
    def subject(self) -> str:
        """What changed, in words: ``mode``, or ``dimension 1 of ids`` for a size."""
        dims = sorted({row["dim"] for row in self.rows if row["dim"] is not None})
        if self.row["kind"] == "size" and dims:
            return f"dimension {' and '.join(map(str, dims))} of {self.source}"
        if self.row["kind"] == "length":
            return f"the length of {self.source}"
        return self.source

    @property
    def function(self) -> str:
        return function_name(self.row["co_name"])

    @property
    def is_learning_rate(self) -> bool:
        """Whether it is an optimizer's learning rate, which a scheduler changes."""
        return "['lr']" in self.source

    @property
    def is_choice(self) -> bool:
        """Whether the values are strings, booleans or None: they choose, nobody calculates."""
        met = [row["old"] for row in self.rows if row["old"] is not None]
        return bool(met) and all(_CHOICE.fullmatch(value) for value in met)

    def place(self) -> Location | None:
        """The line that reads what changed, where the log names it in full; else the function's."""
        named = next((row for row in self.rows if row["user_line"] is not None), None)
        if named is None or not named["user_file"]:
            return _places.code_object(self.row)
        file = named["user_file"]
        known = self.row["co_filename"]
        if (
            not PurePath(file).is_absolute()
            and known
            and PurePath(known).name == PurePath(file).name
        ):
            file = known  # torch cuts the front off paths in guards
        if not PurePath(file).is_absolute():
            return _places.code_object(self.row)
        return Location(file, named["user_line"], named["co_name"])

    def values(self, most: int = 6) -> str:
        """``0 → 1 → 2``: the values that guards expected, then the last one met where known."""
        met = [row["old"] for row in self.rows if row["old"] is not None]
        last = self.rows[-1]["new"]
        distinct = list(dict.fromkeys(met if last is None else [*met, last]))
        more = len(distinct) > most or (bool(distinct) and last is None)
        return " → ".join(distinct[:most]) + (" → …" if more else "")

    def marks(self) -> str:
        """Lines that make the dimensions that changed symbolic from the first call on.

        torch specialises on sizes of 0 and 1 whatever it is told, so where one was met the mark can
        only be a wish: ``maybe_mark_dynamic``.
        """
        name = "maybe_mark_dynamic" if {"0", "1"} & set(sizes_met(self)) else "mark_dynamic"
        tensor = _GLOBAL.sub(r"\1", self.row["source_name"] or "x")
        dims = sorted({row["dim"] for row in self.rows if row["dim"] is not None})
        return "\n".join(f"torch._dynamo.{name}({tensor}, {dim})" for dim in dims)

    def evidence(self) -> tuple[Evidence, ...]:
        return tuple(
            from_row(f"{row['compile_id']}: {short(row['guard'])}", "recompiles", row)
            for row in self.rows[:MOST_EVIDENCE]
        )

    def cost(self, tables: Tables) -> Cost:
        keys = {row["compile_key"] for row in self.rows}
        spent = _costs.compile_seconds(tables, keys)
        return Cost(seconds=spent, about=f"compiling it again {times(len(keys))}")


def place(tables: Tables, cause: Cause) -> Location | None:
    """``cause.place()``; where that is torch's own code, the torch.compile call that led there."""
    found = cause.place()
    if not _places.in_torch(found):
        return found
    owners = {row["compile_key"]: region[2] for region, row in assign_regions(tables)}
    region = owners.get(cause.row["compile_key"])
    own = [row for row in first_rank(rows(tables, "regions")) if row["region_id"] == region]
    return _places.compile_call(own[0]) if own else found


def causes(tables: Tables) -> Iterator[Cause]:
    """One cause a function, kind, source and dimension; only the guard that decided counts.

    A dimension is left out of the key, so that a tensor that changes in two is one cause.
    """
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows(tables, "recompiles"):
        if row["order"] in (0, None):
            key = (*frame_of(row), row["kind"], row["source_name"])
            found.setdefault(key, []).append(row)
    for group in found.values():
        yield Cause(tuple(group))


def limited_frames(tables: Tables) -> set[Frame]:
    """Functions that reached the recompile limit."""
    frames = {frame_of(row) for row in rows(tables, "compiles", outcome="limit")}
    warned = {
        (row["file"], row["line"]) for row in rows(tables, "warnings", kind="recompile_limit")
    }
    return frames | warned


def main_cause(tables: Tables, frame: Frame) -> Cause | None:
    """The cause behind most recompiles of ``frame``."""
    own = [cause for cause in causes(tables) if frame_of(cause.row) == frame]
    return max(own, key=lambda cause: len(cause.rows), default=None)


def sizes_met(cause: Cause) -> Counter[str]:
    """How often each expected size stands in the guards."""
    return Counter(row["old"] for row in cause.rows if row["old"] is not None)

"""From rows to lines of the user's own source.

What happens often happens in code that the user did not write: torch's wrappers, ``contextlib``,
hooks, a helper library. A ``Spot`` is the innermost line of the user's own on the stack, with the
library's line under it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import PurePath
from typing import Any

import msgspec
import polars as pl

from traceview.derive.facts.rows import Row, rows
from traceview.json_errors import NOT_JSON
from traceview.tables import Tables
from traceview.torchtext.frames import StackFrame, is_user_frame, resumed, torch_roots, written_name
from traceview.words.names import at_line

#: Code of torch's own: a break there is not at a line that the user wrote.
_TORCH = re.compile(r"/(?:site|dist)-packages/torch/")
#: What is installed next to it: the folder of the top package, or a module of its own.
_PACKAGE = re.compile(r".*/(?:site|dist)-packages/[^/]+(?:/|$)")


class Location(msgspec.Struct, frozen=True):
    """A line of the user's own source."""

    file: str
    line: int
    function: str | None = None


class Spot(msgspec.Struct, frozen=True):
    """The user's own line; ``inside``: the library's line that it led to, if that is another."""

    place: Location | None
    inside: Location | None = None


class Owners:
    """Whose code a stack frame is.

    Paths usually show it. Files that the collector kept a copy of are the user's wherever they are:
    it knows the script's own folder, which may be an installed package.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @cached_property
    def _kept(self) -> frozenset[str]:
        return frozenset(self._tables["sources"]["file"].drop_nulls())

    @cached_property
    def _packages(self) -> tuple[str, ...]:
        """Installed packages that the script belongs to."""
        return tuple({match[0] for file in self._kept if (match := _PACKAGE.match(file))})

    @cached_property
    def _compiles(self) -> dict[str, Row]:
        """``compile_key`` → its code object and the stack on which it began, of every pass."""
        names = ("compile_key", "co_filename", "co_firstlineno", "co_name", "stack")
        compiles = self._tables["compiles"].select(names).unique("compile_key", keep="first")
        return {row["compile_key"]: row for row in compiles.iter_rows(named=True)}

    def owns(self, frame: StackFrame, roots: frozenset[str] = frozenset()) -> bool:
        """Whether ``frame`` is the user's own code; ``roots`` are torch's folders."""
        if frame.file in self._kept or frame.file.startswith(self._packages):
            return True
        return is_user_frame(frame, roots)

    def spot(self, row: Row) -> Spot:
        """Where the event of ``row`` (``user_stack``, ``compile_key``) lies in the user's code."""
        stack = frames(row["user_stack"])
        found = self._innermost(stack) if stack else Spot(None)
        if found.place is None:  # a text log may quote no more than the compiled frame
            outer = frames(self._compiled(row).get("stack"))[:-1]
            found = self._innermost((*outer, *stack)) if stack else found
        return found if found.place else Spot(user(row))

    def code(self, row: Row) -> Spot:
        """The compiled code object of ``row``; where that is a library's, the call that led there.

        ``row`` is one of ``compiles``, or names one by its ``compile_key``.
        """
        own = code_object(row)
        if own is None or self.owns(StackFrame(own.file, own.line, own.function)):
            return Spot(own)
        named = row if "stack" in row else self._compiled(row)
        found = self._innermost(frames(named.get("stack"))[:-1])
        return Spot(found.place, own) if found.place else Spot(own)

    def caller(self, row: Row) -> Location | None:
        """The user's own line that called the code object of a row of ``compiles``."""
        return self._innermost(frames(row["stack"])[:-1]).place

    def called(self, row: Row) -> Location | None:
        """The same, or the code object itself where no line of the user's called it."""
        return self.caller(row) or self.code(row).place

    def is_torchs(self, row: Row) -> bool:
        """Whether it happened in torch's own code and none of the user's was compiled around it."""
        stack = self._traced(row)
        if not stack:
            return in_torch(user(row))
        return in_torch(_of_frame(stack[-1])) and self._innermost(stack).place is None

    def about(self, *found: Row) -> frozenset[str]:
        """What graph breaks are about: the code behind each, which Dynamo compiles by itself.

        Where there is none (nothing follows, or the frame was skipped), the function that breaks.
        """
        return self.behind(*found) or self.about_compiles(*found)

    def behind(self, *found: Row) -> frozenset[str]:
        """The code that Dynamo compiled behind graph breaks, named as ``about`` does."""
        return frozenset(
            f"{frame.file}:{frame.line}"
            for row in found
            for frame in self._traced(row)
            if (frame.file, frame.line) in self._resumed
        )

    @cached_property
    def _resumed(self) -> frozenset[tuple[str, int]]:
        """File and line of breaks behind which code was compiled: there its code object begins."""
        return frozenset(
            (row["co_filename"], row["co_firstlineno"])
            for row in self._compiles.values()
            if resumed(row["co_name"])
        )

    def about_compiles(self, *found: Row) -> frozenset[str]:
        """The functions whose compiles ``found`` belong to (rows with a ``compile_key``)."""
        return about(*filter(None, map(self._compiled, found)))

    def _compiled(self, row: Row) -> Row:
        """The compile that ``row`` belongs to; empty where it is not known."""
        return self._compiles.get(row["compile_key"] or "", {})

    def _traced(self, row: Row) -> tuple[StackFrame, ...]:
        """The part of ``user_stack`` that Dynamo traced: from the compiled frame inward."""
        stack, code = frames(row["user_stack"]), self._compiled(row)
        file, name = code.get("co_filename"), code.get("co_name")
        starts = [n for n, at in enumerate(stack) if (at.file, at.function) == (file, name)]
        return stack[starts[-1] :] if starts else stack

    def _innermost(self, stack: tuple[StackFrame, ...]) -> Spot:
        roots = torch_roots(frame.file for frame in stack)
        mine = next((frame for frame in reversed(stack) if self.owns(frame, roots)), None)
        if mine is None:
            return Spot(None)
        inside = None if stack[-1] is mine else _of_frame(stack[-1])
        return Spot(_of_frame(mine), inside)


def user(row: Row) -> Location | None:
    """``user_file``, ``user_line`` and, where there is one, ``user_function``."""
    return _location(row["user_file"], row["user_line"], row.get("user_function"))


def line_of(row: Row) -> Location | None:
    """``file``, ``line`` and, where there is one, ``function``."""
    return _location(row["file"], row["line"], row.get("function"))


def code_object(row: Row) -> Location | None:
    """First line of the compiled code object."""
    return _location(row["co_filename"], row["co_firstlineno"], row.get("co_name"))


def compile_call(row: Row | None) -> Location | None:
    """The torch.compile call of a region; None where it is not known, or there is no region."""
    return _location(row["call_file"], row["call_line"], row["call_function"]) if row else None


def about(*found: Mapping[str, Any]) -> frozenset[str]:
    """The functions of rows of ``compiles`` or ``recompiles``, as ``Finding.about`` names them."""
    return frozenset(
        f"{row['co_filename']}:{row['co_firstlineno']}"
        for row in found
        if row["co_filename"] and row["co_firstlineno"] is not None
    )


def about_region(row: Row | None) -> frozenset[str]:
    """The same for the callable of a row of ``regions``."""
    if row is None or not row["target_file"] or row["target_line"] is None:
        return frozenset()
    return frozenset({f"{row['target_file']}:{row['target_line']}"})


def about_calls(tables: Tables, region: Row | None) -> frozenset[str]:
    """All functions that were compiled in the calls of a row of ``regions``, itself included."""
    if region is None:
        return frozenset()
    own = tables["compile_regions"].filter(
        pl.col("pid") == region["pid"], pl.col("region_id") == region["region_id"]
    )
    keys = set(own["compile_key"])
    inside = (row for row in rows(tables, "compiles") if row["compile_key"] in keys)
    return about_region(region) | about(*inside)


def if_users(file: str, line: int, function: str | None) -> Location | None:
    """The line that a comment in a graph names, where it is the user's own."""
    frame = StackFrame(file, line, function)
    return Location(file, line, function) if is_user_frame(frame) else None


def first_call(region: Row) -> Location | None:
    """The user's own line that called what torch.compile gave back, the first time."""
    called = frames(region["first_call_stack"])
    return _of_frame(called[-1]) if called else None


def region_of(tables: Tables, compile_key: str | None) -> Row | None:
    """The region that a compile belongs to, of the same process."""
    return tables.once(_regions_of_compiles).get(compile_key)


def _regions_of_compiles(tables: Tables) -> dict[str | None, Row]:
    """``compile_key`` → its row of ``regions``, for all that belong to one."""
    known = {(row["pass"], row["pid"], row["region_id"]): row for row in rows(tables, "regions")}
    owners = {
        row["compile_key"]: (row["pass"], row["pid"], row["region_id"])
        for row in tables["compile_regions"].iter_rows(named=True)
    }
    return {key: known[region] for key, region in owners.items() if region in known}


def in_torch(place: Location | None) -> bool:
    """Whether the line lies in torch's own sources."""
    if place is None:
        return False
    file = place.file.replace("\\", "/")
    return bool(_TORCH.search(file) or torch_roots((file,)))


def short(place: Location | None) -> str:
    """``model.py:14``, ``nb.ipynb, cell 2, line 14``, or ``an unknown line``."""
    return at_line(PurePath(place.file).name, place.line) if place else "an unknown line"


def stack(row: Row) -> tuple[StackFrame, ...]:
    """The stack on which the compile of a row of ``compiles`` began, outermost first."""
    return frames(row["stack"])


def source_text(row: Row, place: Location | None = None) -> str | None:
    """The source line at ``place``, or at the inner end of ``user_stack``, as the log quotes it."""
    found = [
        frame.code.strip()
        for frame in frames(row["user_stack"])
        if frame.code and (place is None or (frame.file, frame.line) == (place.file, place.line))
    ]
    return found[-1] or None if found else None


@lru_cache(4096)  # every rule looks at the same stacks
def frames(stack: str | None) -> tuple[StackFrame, ...]:
    """A stack as the tables keep it, outermost first; what is no such stack has no frames."""
    try:
        entries = json.loads(stack or "[]")
    except NOT_JSON:
        return ()
    found: list[StackFrame] = []
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            file, function, code = (
                text if isinstance(text := entry.get(key), str) else None
                for key in ("file", "function", "code")
            )
            line = entry.get("line")
            known = line if isinstance(line, int) else None
            found.append(StackFrame(file or "", known, function, code))
    return tuple(found)


def _of_frame(frame: StackFrame) -> Location | None:
    return _location(frame.file, frame.line, frame.function)


def _location(file: str | None, line: int | None, function: str | None) -> Location | None:
    if not file or line is None:
        return None
    return Location(file, line, written_name(function))

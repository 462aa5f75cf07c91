"""Table ``script_timers``: clocks of the script's own that run around a region's calls.

The stack of the first call says which line of each function led to it. A clock that is read before
that line and again after it, in the same function, holds the compile in its figure. Where later
calls are made is known from the lines window.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import asdict, replace

from traceview.derive.clocks import (
    Clocks,
    Read,
    Scope,
    Site,
    Start,
    clocks_of,
    import_names,
    loops_that_queue,
    nodes_of,
    scope_at,
    shown_whole,
    times_of,
)
from traceview.derive.syntax import ReadSource, syntax_tree
from traceview.tables import Tables, from_rows
from traceview.torchtext import marks

#: Deeper stacks are not a benchmark script.
MOST_STACK_FRAMES = 50
MOST_SITES = 300


class Timer(msgspec.Struct, frozen=True):
    """A clock around a call; lines as in table ``script_timers``."""

    start_line: int
    read_line: int
    call_line: int
    function: str
    clock: str
    calls_in_loop: bool
    spans_first_call: bool
    read_in_loop: bool = False
    shown_whole: bool = False
    waits: bool | None = None
    calls: int | None = None


def script_timers(tables: Tables, read_source: ReadSource) -> pl.DataFrame:
    """Table ``script_timers``; ``read_source`` gives a file's text, None where there is no copy."""
    rows: list[dict[str, Any]] = []
    for region in tables["regions"].iter_rows(named=True):
        head = {key: region[key] for key in ("pass", "rank", "region_id")}
        in_loop = False
        for place in reversed(_stack(region["first_call_stack"])):
            source, at = read_source(place["file"]) or "", (place["line"], place.get("function"))
            found = timers(source, *at, in_loop)
            rows.extend({**head, "file": place["file"], **asdict(timer)} for timer in found)
            tree = None if in_loop else syntax_tree(source)
            call = _call_site(scope_at(tree, *at), place["line"]) if tree else None
            in_loop = in_loop or bool(call and call.loops())
        first = {(row["file"], row["start_line"], row["read_line"]) for row in rows}
        # The user's lines that called the region when it had long been compiled.
        later = tables["line_ops"].filter(
            pl.col("stance") == "compiled",
            pl.col("pass") == region["pass"],
            pl.col("rank").eq_missing(pl.lit(region["rank"], dtype=pl.Int32)),
            pl.col("name") == f"{marks.OUR_CALL}{region['region_id']}",
        )
        places = later.drop_nulls(["file", "line"]).select("file", "line")
        for file, line in places.unique(maintain_order=True).iter_rows():
            for timer in timers(read_source(file) or "", line):
                if (file, timer.start_line, timer.read_line) not in first:
                    steady = replace(timer, spans_first_call=False)
                    rows.append({**head, "file": file, **asdict(steady)})
    return from_rows("script_timers", rows)


def timers(
    source: str, call_line: int, function: str | None = None, called_in_loop: bool = False
) -> list[Timer]:
    """The clocks in the function around ``call_line`` that run while that line's first call does.

    ``called_in_loop``: the first call lies in a loop of a function further in.
    """
    tree = syntax_tree(source)
    if tree is None:
        return []
    scope = scope_at(tree, call_line, function)
    call = _call_site(scope, call_line)
    if call is None:
        return []
    name = getattr(scope, "name", "<module>")
    try:
        found = clocks_of(scope, import_names(tree))
    except RecursionError:  # a name of thousands of dots
        return []
    if len(found.starts) + len(found.reads) > MOST_SITES:
        return []
    spans = [*_pairs(found, call), *_timeit(found, call)]
    started = {start.site.line: start.variable for start in found.starts}
    shown = shown_whole(scope, started.values()) if spans else set()
    return [
        Timer(
            start,
            read,
            call.line,
            name,
            clock,
            calls_in_loop=several or called_in_loop,
            spans_first_call=True,
            read_in_loop=_goes_on(found, start, read, call),
            shown_whole=started.get(start) in shown,
            **_unwaited(tree, scope, (start, read), call, found),
        )
        for start, read, clock, several in spans
    ]


def _goes_on(found: Clocks, start_line: int, read_line: int, call: Site) -> bool:
    """Whether a clock is read again and again in a loop that calls but does not restart it."""
    started = [loop for s in found.starts if s.site.line == start_line for loop in s.site.loops()]
    around = [loop for r in found.reads if r.site.line == read_line for loop in r.site.loops()]
    return any(loop in call.loops() and loop not in started for loop in around)


def _unwaited(
    tree: ast.Module, scope: Scope, lines: tuple[int, int], call: Site, found: Clocks
) -> dict[str, Any]:
    """``waits`` (False or not known) and ``calls`` of the clock that is read at ``lines``."""
    loops = loops_that_queue(tree, scope, lines, call.line)
    if loops is None:
        return {}
    around = next(s.site.loops() for s in found.starts if s.site.line == lines[0])
    return {"waits": False, "calls": times_of((*around, *loops))}


def _stack(text: str | None) -> list[Mapping[str, Any]]:
    """The stack frames of a JSON list that name a file and a line; outermost first."""
    try:
        entries = json.loads(text or "[]")
    except ValueError:
        return []
    return [
        entry
        for entry in (entries if isinstance(entries, list) else [])[-MOST_STACK_FRAMES:]
        if isinstance(entry, dict)
        and isinstance(entry.get("file"), str)
        and isinstance(entry.get("line"), int)
    ]


def _call_site(scope: Scope, line: int) -> Site | None:
    """The innermost statement that covers ``line``, as a site at that line."""
    covering = [
        (node, path)
        for node, path in nodes_of(scope)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not covering:
        return None
    deepest = max(len(path) for _, path in covering)
    return next(Site(line, path) for _, path in covering if len(path) == deepest)


def _pairs(found: Clocks, call: Site) -> Iterator[tuple[int, int, str, bool]]:
    """(start line, read line, clock, several calls between) of every clock around ``call``."""
    for start in found.starts:
        later = [read for read in found.reads if read.variable == start.variable]
        for read in later:
            if _spans(start, read, call, found):
                several = _several(start, read, call, found)
                yield start.site.line, read.site.line, start.clock, several
                break  # the first reading after the call is the figure; later ones repeat it


def _spans(start: Start, read: Read, call: Site, found: Clocks) -> bool:
    """Whether ``start`` surely runs before the first call and ``read`` after it, unrestarted."""
    if not start.site.line < call.line <= read.site.line or read.site.line == start.site.line:
        return False
    if any(step not in call.path for step in start.site.branches()):
        return False  # the start stands in a branch that this call need not have come through
    taken = {id(node): field for node, field in call.branches()}
    if any(taken.get(id(node), field) != field for node, field in read.site.branches()):
        return False  # the two stand in different branches of one ``if``
    if any(loop not in call.loops() for loop in start.site.loops()):
        return False
    return not any(
        _restarts(other, start, read, call)
        for other in found.starts
        if other is not start and other.variable == start.variable
    )


def _restarts(other: Start, start: Start, read: Read, call: Site) -> bool:
    """Whether ``other`` sets the same variable again between the start and the read."""
    line = other.site.line
    if start.site.line < line <= call.line and not other.site.branches():
        return True
    if call.line < line < read.site.line:
        return True
    # Set again before the call in a later round (``if i == warmup: t0 = clock()``), the read being
    # reached after that round only if it stands outside the loop.
    shared = [loop for loop in other.site.loops() if loop in call.loops()]
    outside = [loop for loop in shared if loop not in read.site.loops()]
    return bool(outside) or (bool(shared) and start.site.line < line <= call.line)


def _several(start: Start, read: Read, call: Site, found: Clocks) -> bool:
    """Whether a loop repeats the call between the two readings."""
    for loop in call.loops():
        if loop in start.site.loops():
            continue
        if loop not in read.site.loops():
            return True
        restarted = any(
            other.variable == start.variable and loop in other.site.loops()
            for other in found.starts
        )
        if not restarted or read.site.branches() != call.branches():
            return True
    return False


def _timeit(found: Clocks, call: Site) -> Iterator[tuple[int, int, str, bool]]:
    """``timeit.timeit(lambda: f(x))`` around the call: it times every call from the first."""
    for clock, site in found.timeit:
        if site.line <= call.line and site.path == call.path and call.line - site.line <= 3:
            yield site.line, site.line, clock, True

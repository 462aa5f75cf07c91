"""Table ``script_timers``: clocks of the script's own that run around a region's calls.

The stack of the first call says which line of each function led to it. A clock that is read before
that line and again after it, in the same function or in the context manager of a ``with`` around
it, holds the compile in its figure. Where later calls are made is known from the lines window, and
from the function of the first call: a helper that warms up calls the same name again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
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
    block_queues,
    called_alike,
    clocks_of,
    contexts_around,
    import_names,
    loops_that_queue,
    nodes_of,
    only_queues,
    root_of,
    scope_at,
    shown_whole,
    times_of,
    yield_line,
)
from traceview.derive.facts.places import frames
from traceview.derive.syntax import ReadSource, covers, syntax_tree
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
    starts_again: bool = False
    waits: bool | None = None
    calls: int | None = None


def script_timers(tables: Tables, read_source: ReadSource) -> pl.DataFrame:
    """Table ``script_timers``; ``read_source`` gives a file's text, None where there is no copy."""
    rows: list[dict[str, Any]] = []
    for region in tables["regions"].iter_rows(named=True):
        head = {key: region[key] for key in ("pass", "rank", "region_id")}
        in_loop = False
        stack = frames(region["first_call_stack"])[-MOST_STACK_FRAMES:]
        for place in reversed(stack):
            if not place.file or place.line is None:
                continue
            source, at = read_source(place.file) or "", (place.line, place.function)
            found = timers(source, *at, in_loop)
            tree = syntax_tree(source)
            if tree is not None:
                scope = scope_at(tree, *at)
                for line in called_alike(tree, scope, place.line):
                    again = timers(source, line, place.function, in_loop)
                    found += [replace(timer, spans_first_call=False) for timer in again]
                call = _call_site(scope, place.line)
                in_loop = in_loop or bool(call and call.loops())
            # What holds the first call stands before those that do not.
            for timer in {(each.start_line, each.read_line): each for each in found[::-1]}.values():
                rows.append({**head, "file": place.file, **asdict(timer)})
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
    found = _timers_in(tree, scope, call_line, called_in_loop)
    for block, manager in contexts_around(tree, scope, call_line):
        call, pause = _call_site(scope, call_line), yield_line(manager)
        inside = call.loops() if call else []
        several = any(getattr(loop, "lineno", 0) > block.lineno for loop in inside)
        loops = block_queues(tree, block, call_line)
        for timer in _timers_in(tree, manager, pause or 0, called_in_loop or several):
            calls = times_of(loops) if loops is not None and timer.waits is False else None
            waits = None if loops is None else timer.waits
            found.append(replace(timer, call_line=call_line, waits=waits, calls=calls))
    return found


def _timers_in(tree: ast.Module, scope: Scope, call_line: int, called_in_loop: bool) -> list[Timer]:
    """The clocks of ``scope`` itself around the line."""
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
    around = _Around(call, found)
    spans = list(around.spans())
    started = {start.site.line: start for start in found.starts}
    shown = shown_whole(scope, [s.variable for s in started.values()]) if spans else set()
    result = []
    for start, read, clock, several in spans:
        timer = Timer(
            start,
            read,
            call.line,
            name,
            clock,
            calls_in_loop=several or called_in_loop,
            spans_first_call=True,
            read_in_loop=around.goes_on(start, read),
            shown_whole=start in started and started[start].variable in shown,
            starts_again=around.starts_again(scope, start, read),
        )
        timed = next((each for each in found.timed if each.site.line == start), None)
        if timed is not None and start == read:
            waits = False if only_queues(tree, timed) else None
            several = timed.calls is None or timed.calls > 1
            timer = replace(
                timer,
                calls_in_loop=called_in_loop or several,
                spans_first_call=not timed.warms_up,
                waits=waits,
                calls=timed.calls,
            )
            result.append(timer)
            continue
        loops = loops_that_queue(tree, scope, (start, read), call.line)
        if loops is not None:
            outer = next(s.site.loops() for s in found.starts if s.site.line == start)
            timer = replace(timer, waits=False, calls=times_of((*outer, *loops)))
        result.append(timer)
    return result


def _call_site(scope: Scope, line: int) -> Site | None:
    """The innermost statement that covers ``line``, as a site at that line."""
    paths = [p for n, p in nodes_of(scope) if isinstance(n, ast.stmt) and covers(n, line)]
    return Site(line, max(paths, key=len)) if paths else None


class _Around(msgspec.Struct, frozen=True):
    """The clocks of a scope, as seen from a call in it."""

    call: Site
    found: Clocks

    def spans(self) -> Iterator[tuple[int, int, str, bool]]:
        """(start line, read line, clock, several calls between) of every clock around the call."""
        for start in self.found.starts:
            later = (read for read in self.found.reads if read.variable == start.variable)
            # The first reading after the call is the figure; later ones repeat it.
            read = next((read for read in later if self._spans(start, read)), None)
            if read is not None:
                yield start.site.line, read.site.line, start.clock, self._several(start, read)
        # ``timeit.timeit(lambda: f(x))`` around the call: it times every call from the first.
        for timed in self.found.timed:
            site = timed.site
            if site.path == self.call.path and 0 <= self.call.line - site.line <= 3:
                yield site.line, site.line, timed.clock, True

    def goes_on(self, start_line: int, read_line: int) -> bool:
        """Whether a clock is read again and again in a loop that calls but does not restart it."""
        starts = (s.site for s in self.found.starts if s.site.line == start_line)
        reads = (r.site for r in self.found.reads if r.site.line == read_line)
        started = [loop for site in starts for loop in site.loops()]
        around = [loop for site in reads for loop in site.loops()]
        return any(loop in self.call.loops() and loop not in started for loop in around)

    def starts_again(self, scope: Scope, start_line: int, read_line: int) -> bool:
        """Whether a loop around clock and call times what it calls in every round.

        What a round itself makes (``for fn in variants``) it may call for the first time.
        """
        starts = [s.site for s in self.found.starts if s.site.line == start_line]
        reads = [r.site for r in self.found.reads if r.site.line == read_line]
        sites = [*starts[:1], *reads[:1], self.call]
        loops = [loop for loop in sites[0].loops() if all(loop in each.loops() for each in sites)]
        made = {
            node.id
            for loop in loops[-1:]
            for node in ast.walk(loop)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        line = self.call.line
        calls = (n for n, _ in nodes_of(scope) if isinstance(n, ast.Call) and covers(n, line))
        roots = (root_of(call.func) for call in calls)
        return bool(loops) and not any(isinstance(r, ast.Name) and r.id in made for r in roots)

    def _spans(self, start: Start, read: Read) -> bool:
        """Whether ``start`` surely runs before the first call, ``read`` after it, unrestarted."""
        call = self.call
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
            self._restarts(other.site, start, read)
            for other in self.found.starts
            if other is not start and other.variable == start.variable
        )

    def _restarts(self, other: Site, start: Start, read: Read) -> bool:
        """Whether ``other`` sets the same variable again between the start and the read."""
        before_call = start.site.line < other.line <= self.call.line
        if before_call and not other.branches():
            return True
        if self.call.line < other.line < read.site.line:
            return True
        # Set again before the call in a later round (``if i == warmup: t0 = clock()``), the read
        # being reached after that round only if it stands outside the loop.
        shared = [loop for loop in other.loops() if loop in self.call.loops()]
        outside = any(loop not in read.site.loops() for loop in shared)
        return outside or (bool(shared) and before_call)

    def _several(self, start: Start, read: Read) -> bool:
        """Whether a loop repeats the call between the two readings."""
        for loop in self.call.loops():
            if loop in start.site.loops():
                continue
            restarted = any(
                other.variable == start.variable and loop in other.site.loops()
                for other in self.found.starts
            )
            same_branch = read.site.branches() == self.call.branches()
            if loop not in read.site.loops() or not restarted or not same_branch:
                return True
        return False

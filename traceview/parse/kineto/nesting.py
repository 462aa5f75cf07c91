"""Which host event lies in which, by time on the same thread, and what it inherits from there.

Nesting is strict but for rounding: an event may outlast the one around it by up to 1 µs. Marks of
steps do not take part, as a step may begin and end in the middle of an operator.
"""

from __future__ import annotations

import re
from math import inf
from typing import NamedTuple

import polars as pl

from traceview.compile_id import CompileId
from traceview.torchtext import marks

TOLERANCE_NS = 1000
_STEP, _LINE = re.compile(marks.STEP), re.compile(marks.OUR_LINE)
_REGION = re.compile(rf"{marks.starting(*marks.OUR_REGIONS)}(.+)$")
_BACKWARD = re.compile(r"Backward\d*$")


class Context(NamedTuple):
    """What holds for an event: our region, the compiled graph, the compile, and the user's line.

    ``line`` is as its mark has it: F:L.
    """

    region: str | None = None
    graph_key: str | None = None
    compile_id: str | None = None
    line: str | None = None

    def within(self, outer: Context) -> Context:
        """What holds for this context inside of ``outer``."""
        return Context(*(mine or others for mine, others in zip(self, outer, strict=True)))


_FOLLOWED = ("what", "start_ns", "duration_ns", "sequence", "forward_thread")
_AROUND = {"parent_id": pl.Int32, "depth": pl.Int32, "cpu_op_id": pl.Int32, "context": pl.UInt32}
#: Rows as Python objects at a time.
_ROWS = 65_536
#: An event that later ones may lie in: its end, its number, depth, the number of the deepest
#: operator (itself included), and the number of its context.
_Open = tuple[float, "int | None", int, "int | None", int]
_TOP: _Open = (inf, None, -1, None, 0)


class _What(NamedTuple):
    """What the name, kind and thread of an event say; a step's mark lies on no thread."""

    stack: list[_Open]
    mark: Context | None
    is_step: bool
    is_call: bool
    is_operator: bool
    is_backward: bool


def nest(host: pl.DataFrame, whats: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """``host`` (in order of start) with what is around each row; and the contexts by number.

    Operators and marks are numbered from 0 as ``op_id``, calls have none. ``parent_id`` is the one
    around the row, ``cpu_op_id`` the deepest operator there (marks are none). Work on autograd's
    thread has the region and the compile of the forward operator with its sequence number.
    """
    nesting = _Nesting(whats)
    around = [nesting.around(part) for part in host.iter_slices(_ROWS)]
    contexts = pl.DataFrame(
        nesting.contexts, schema=dict.fromkeys(Context._fields, pl.String), orient="row"
    )
    columns = pl.concat([pl.DataFrame(schema=_AROUND), *around])
    is_op = (whats["kind"] != "call")[host["what"]]
    numbers = pl.when(is_op).then(is_op.cum_sum() - 1).cast(pl.Int32).alias("op_id")
    return host.with_columns(numbers, *columns), contexts


class _Nesting:
    """Follows the events of all threads in order of start."""

    def __init__(self, whats: pl.DataFrame) -> None:
        self.contexts = [Context()]
        self._numbers = {Context(): 0}
        self._combined: dict[tuple[Context | int, int], int] = {}
        self._stacks: dict[str, list[_Open]] = {}
        self._whats = [self._what(name or "", kind, tid) for name, kind, tid in whats.iter_rows()]
        self._ops = 0
        self._forward: dict[int, int] = {}

    def _what(self, name: str, kind: str, tid: str) -> _What:
        mark = None
        if name.startswith(marks.REGION):
            if compile_id := CompileId.parse(name.removeprefix(marks.REGION)):
                mark = Context(compile_id=str(compile_id))
        elif name.startswith(marks.GRAPH):
            mark = Context(graph_key=name.removeprefix(marks.GRAPH).removesuffix("##").strip())
        elif line := _LINE.match(name):
            mark = Context(line=f"{line[1]}:{line[2]}")
        elif region := _REGION.match(name):
            mark = Context(region=region[1])
        is_backward = name.startswith(marks.AUTOGRAD) or _BACKWARD.search(name) is not None
        stack = self._stacks.setdefault(tid, [_TOP])
        return _What(stack, mark, is_step(name), kind == "call", kind == "cpu_op", is_backward)

    def around(self, part: pl.DataFrame) -> pl.DataFrame:
        """Columns of what is around each of the next rows."""
        parents: list[int | None] = []
        depths: list[int] = []
        operators: list[int | None] = []
        contexts: list[int] = []
        whats, ops = self._whats, self._ops
        columns = (part[name].to_list() for name in _FOLLOWED)
        for number, start, duration, sequence, forward_thread in zip(*columns, strict=True):
            stack, mark, step, call, operates, backward = whats[number]
            end = start + duration
            if step:
                stack = [_TOP]
            while stack[-1][0] <= start or end > stack[-1][0] + TOLERANCE_NS:
                stack.pop()
            _, parent, depth, operator, context = stack[-1]
            if mark is not None:
                context = self._within(mark, context)
            if sequence is not None and sequence >= 0:
                context = self._paired(context, sequence, backward or forward_thread)
            parents.append(parent)
            depths.append(depth + 1)
            operators.append(operator)
            contexts.append(context)
            if not call:
                stack.append((end, ops, depth + 1, ops if operates else operator, context))
                ops += 1
        self._ops = ops
        return pl.DataFrame([parents, depths, operators, contexts], schema=_AROUND)

    def _within(self, mark: Context, context: int) -> int:
        """The context that a mark makes inside of another."""
        number = self._combined.get((mark, context))
        if number is None:
            number = self._number(mark.within(self.contexts[context]))
            self._combined[mark, context] = number
        return number

    def _paired(self, context: int, sequence: int, backward: int | None) -> int:
        """The context of what has a sequence number: a backward gets its forward's."""
        if not backward:
            held = self.contexts[context]
            if held.region is not None or held.compile_id is not None:
                self._forward[sequence] = context
            else:
                self._forward.pop(sequence, None)
            return context
        forward = self._forward.get(sequence)
        if forward is None or forward == context:
            return context
        number = self._combined.get((forward, context))
        if number is None:
            place = self.contexts[forward]._replace(graph_key=None, line=None)
            number = self._number(self.contexts[context].within(place))
            self._combined[forward, context] = number
        return number

    def _number(self, context: Context) -> int:
        number = self._numbers.setdefault(context, len(self.contexts))
        if number == len(self.contexts):
            self.contexts.append(context)
        return number


def is_step(name: str) -> bool:
    """Whether an event of this name marks a step."""
    return _STEP.match(name) is not None

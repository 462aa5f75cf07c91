"""Rows that nothing can change any more, so that they need not be kept; and frames of them.

Most rows are complete when they are made. Generated code waits for its cache key and for the lines
that provenance gives it, which follow it at once; graphs wait for the code made of them; a phase
waits for its E. Compiles and recompiles are put together when the whole log is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from math import inf
from operator import itemgetter
from typing import Any

import polars as pl

from traceview.parse.structured import kernels
from traceview.parse.structured.state import Block, Process, Row
from traceview.tables import listed, spec_of

_AT_THE_END = ("compiles", "recompiles", "log_records")
_OF_CODE = ("graphs", "generated_kernels", "kernel_calls")
_WORTH_A_PIECE = 256  # rows: a file of fewer costs more than its rows
_SECTIONS_KEPT = 16  # pieces of generated code that still wait; forward and backward make two
_GRAPHS_KEPT = 64  # graphs that still wait for their code
_PHASES_KEPT = 1000  # open phases that an E may still find, as many as ``phases`` looks at
_TRACED_NODES = 40_000  # whose lines are kept for a backward that is compiled later


def rows(process: Process) -> Iterator[tuple[str, list[Row]]]:
    """Take the rows that are complete out of ``process``, table by table."""
    # The line from which on generated code, or what it is made of, may still change.
    sections = [section for c in process.compiles.values() for section in c.sections]
    sections.sort(key=lambda section: section.graph["raw_line"])
    closed = {id(section) for section in sections[:-_SECTIONS_KEPT]}
    waiting = sorted(row["raw_line"] for c in process.compiles.values() for row in c.waiting)
    oldest = waiting[-_GRAPHS_KEPT:][:1]
    for compile in process.compiles.values():
        compile.sections = [s for s in compile.sections if id(s) not in closed]
        compile.waiting = [row for row in compile.waiting if row["raw_line"] >= oldest[0]]
    made_of = (row for s in sections[-_SECTIONS_KEPT:] for row in (s.graph, *s.lowered))
    line = min((*oldest, *(row["raw_line"] for row in made_of)), default=inf)
    of_code = {name: [r for r in process.rows[name] if r["raw_line"] < line] for name in _OF_CODE}
    kernels.settle(process, of_code["generated_kernels"], of_code["kernel_calls"])
    for table, left in process.rows.items():
        if table in _AT_THE_END:
            continue
        if table in _OF_CODE:
            taken = of_code[table]
            del left[: len(taken)]
        elif len(left) < _WORTH_A_PIECE:
            continue
        elif table == "compile_phases":
            del process.loose[:-_PHASES_KEPT]
            still = {id(phase.row) for phase in (*process.phases, *process.loose)}
            taken = [row for row in left if id(row) not in still]
            left[:] = [row for row in left if id(row) in still]
        else:
            taken, left[:] = left[:], []
        if taken:
            yield table, _taken(process, taken)
    # A backward that is compiled later needs the lines; they are not kept without end.
    for row in of_code["graphs"]:
        if row["kind"] == "dynamo_output":
            process.traced.setdefault(row["compile_key"], []).append(kernels.lines_of(row))
    kept = sum(len(lines) for graphs in process.traced.values() for lines in graphs)
    while kept > _TRACED_NODES:
        oldest = process.traced.pop(next(iter(process.traced)))
        kept -= sum(len(lines) for lines in oldest)


def all_rows(process: Process) -> Iterator[tuple[str, list[Row]]]:
    """Every row that is left, once the log is read."""
    kernels.settle(process, process.rows["generated_kernels"], process.rows["kernel_calls"])
    for table, left in process.rows.items():
        if left:
            yield table, _taken(process, left)


def blocks(process: Process) -> Iterator[tuple[str, list[Block]]]:
    """Take the rows that came in blocks, which are complete at once."""
    taken, process.blocks = process.blocks, {}
    for table, found in taken.items():
        _taken(process, [block.head for block in found])
        yield table, found


def _taken(process: Process, rows: list[Row]) -> list[Row]:
    """``rows`` with the rank that the process turned out to have."""
    for row in rows:
        if row["rank"] is None:
            row["rank"] = process.rank
    return rows


# Rows to frames.

Dtype = pl.DataType | type[pl.DataType]
_SAME = ("pass", "raw_file")  # of every row of one process


def frame(table: str, rows: Sequence[Row]) -> pl.DataFrame:
    """Table ``table`` of rows of one process; what a row lacks is null."""
    columns = _columns(rows)
    return pl.DataFrame(
        [
            pl.Series(name, [rows[0][name]], dtype=dtype).new_from_index(0, len(rows))
            if name in _SAME
            else _series(name, dtype, columns(name))
            for name, dtype in spec_of(table).polars_schema.items()
        ]
    )


def _columns(rows: Sequence[Row]) -> Callable[[str], list[Any]]:
    """Name → column. Rows of the same keys are turned in one go: several times faster."""
    keys = tuple(rows[0])
    if set(map(len, rows)) == {len(keys)}:
        with suppress(KeyError):
            turned = dict(zip(keys, zip(*map(itemgetter(*keys), rows), strict=True), strict=True))
            return lambda name: list(turned[name]) if name in turned else [None] * len(rows)
    return lambda name: [row.get(name) for row in rows]


def frame_of_blocks(table: str, blocks: Sequence[Block]) -> pl.DataFrame:
    """The same of rows that came in blocks."""
    schema, own = spec_of(table).polars_schema, blocks[0].columns
    numbers = [number for number, block in enumerate(blocks) for _ in range(block.rows)]
    heads = pl.DataFrame(
        [
            _series(name, dtype, [block.head.get(name) for block in blocks])
            for name, dtype in schema.items()
            if name not in own
        ]
    )
    columns = [
        _series(name, schema[name], list(chain.from_iterable(b.columns[name] for b in blocks)))
        for name in own
    ]
    return heads[numbers].hstack(columns).select(list(schema))


def _series(name: str, dtype: Dtype, values: list[Any]) -> pl.Series:
    return pl.Series(name, listed(values, dtype), dtype=dtype, strict=False)

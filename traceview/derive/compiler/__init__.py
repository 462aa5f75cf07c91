"""What the compiler did and what it costs: fusion in words, passes, guards, call path, first call.

traffic      bytes that the operations of a graph move
lowered      one compiled graph: operations, scheduler nodes, kernels
notes        fusion in words, with torch's reasons and the neighbors of GEMMs
passes       what each pass changed
call_path    from the user's call into the generated code, and the guards on it
output_views what a call does after its graph to give out views
first_calls  parts of compiling, and where the first call's time went
trace        all of it on one time axis, as a Chrome trace
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import polars as pl

from traceview.derive.compiler.call_path import call_path, guard_costs, output_views
from traceview.derive.compiler.first_calls import first_calls
from traceview.derive.compiler.lowered import lowered_graphs
from traceview.derive.compiler.notes import fusion_notes
from traceview.derive.compiler.passes import graph_passes
from traceview.derive.windows import Window
from traceview.tables import Tables, from_rows
from traceview.torchtext.fx import read_graph

__all__ = ["compiler_tables"]


def compiler_tables(tables: Tables, found: Sequence[Window]) -> dict[str, pl.DataFrame]:
    """The tables of this part, each only where what it is read from was recorded.

    fusion_notes, graph_passes, guard_costs, call_path, output_views and first_calls.
    """
    made: dict[str, pl.DataFrame] = {}
    if tables.has("graphs"):
        parse = cache(read_graph)  # what a pass leaves alone is printed twice, word for word
        lowered = list(lowered_graphs(tables, parse))
        made["graph_passes"] = from_rows("graph_passes", graph_passes(tables, lowered, parse))
        if found:
            made["output_views"] = from_rows("output_views", output_views(tables, found, parse))
        if tables.has("fusions"):
            made["fusion_notes"] = from_rows("fusion_notes", fusion_notes(tables, lowered))
    if tables.has("compiles"):
        made["guard_costs"] = from_rows("guard_costs", guard_costs(tables))
    if found:
        made["call_path"] = from_rows("call_path", call_path(tables, found))
    if tables.has("compile_phases") and tables.has("calls"):
        made["first_calls"] = from_rows("first_calls", first_calls(tables))
    return made

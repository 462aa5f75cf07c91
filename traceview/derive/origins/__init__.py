"""From kernel to source and back: user lines of operators, groups of kernels that belong together.

tree     what stands around an operator; the forward of a backward
lines    operators → lines of the user's, as a lines window saw them or the traced graph names them
work     what did the work in a window, with the kind of work
calls    executions in compiled graphs → calls in the generated code, their nodes and lines
groups   keys, and sets of kernels that share them
matched  all of it for the windows of one rank
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceview.derive.callables import MEASURED_PASS
from traceview.derive.origins.matched import matched
from traceview.derive.windows import Window
from traceview.tables import Tables

__all__ = ["origin_tables"]


def origin_tables(tables: Tables, found: Sequence[Window]) -> dict[str, pl.DataFrame]:
    """op_sources, matched_kernels and match_groups; none where nothing was profiled."""
    runs: dict[tuple[str, int | None], list[Window]] = {}
    for window in found:
        runs.setdefault((window.pass_name, window.rank), []).append(window)
    for (name, rank), windows in list(runs.items()):
        # An eager window of the baseline joins a measured run without any.
        measured = runs.get((MEASURED_PASS, rank), ())
        if name == "baseline" and [window.stance for window in measured] == ["compiled"]:
            runs[MEASURED_PASS, rank] = [*windows, *measured]
            del runs[name, rank]
    parts = [matched(tables, windows) for windows in runs.values()]
    names = parts[0].keys() if parts else ()
    return {name: pl.concat([part[name] for part in parts]) for name in names}

"""Compiling ahead of time, in words: what the logs hold next to torch.compile, or in its place."""

from __future__ import annotations

from traceview.tables import Tables
from traceview.words.numbers import plural, seconds

_NAMES = {"aot_inductor": "AOTInductor", "export": "torch.export"}


def ahead_of_time(tables: Tables) -> str | None:
    """``AOTInductor compiled ahead of time: 44.5 s, 1 graph``; None where nothing did."""
    said = []
    for kind, name in _NAMES.items():
        rows = tables["ahead_compiles"].filter(kind=kind)
        if rows.is_empty():
            continue
        timed = rows["seconds"].drop_nulls().to_list()
        graphs = sum(rows["graphs"].drop_nulls().to_list())
        took = [seconds(sum(timed)) if timed else "time not recorded"]
        took += [plural(graphs, "graph")] if graphs else []
        what = "compiled ahead of time" if kind == "aot_inductor" else "captured a program"
        said.append(f"{name} {what}: {', '.join(took)}")
    return "; ".join(said) or None

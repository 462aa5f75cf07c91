"""Raw files to tables: reads what the passes left, counts what it could not read, judges nothing.

    collected    the collector's own events, and endings from the manifest
    structured   TORCH_TRACE
    textlogs     TORCH_LOGS text and stderr
    kineto       profiler traces

Each has ``read_pass(run, record, damage)``. Text logs come after the structured log, which knows
which compiles repeat after a reset and which process is which rank. Imports stand in the functions:
the process that only cuts a log needs no polars.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceview.run import Run
    from traceview.tables import Tables

__all__ = ["load_or_parse", "parse_run"]


def parse_run(run: Run) -> Tables:
    """Every table that the run's raw files have rows for, all passes one after the other.

    A table that no log could have had rows for is absent. ``unreadable`` is always there.
    """
    from traceview.errors import spared
    from traceview.parse import collected, kineto, structured, textlogs
    from traceview.parse.damage import READER_FAILED, Damage
    from traceview.parse.keys import CompileKeys
    from traceview.parse.merge import combine, fill_ranks, ranks_of, together, without_device
    from traceview.tables import Tables

    passes = [{"unreadable": Damage().frame("")}]
    for record in run.manifest.passes:
        damage = Damage()
        own = collected.read_pass(run, record, damage)
        trace, text, profile = {}, {}, {}
        failed = partial(damage.count, record.raw, READER_FAILED, None)
        with spared(failed):
            trace = structured.read_pass(run, record, damage)
        compiles = trace.get("compiles")
        ranks = ranks_of([own["runs"], *([compiles] if compiles is not None else [])])
        with spared(failed):
            keys = CompileKeys(record.name, compiles, ranks)
            text = textlogs.read_pass(run, record, damage, keys)
        with spared(failed):
            profile = without_device(kineto.read_pass(run, record, damage))
        # A profile may have memory as well as the collector: rows of both, by their ``source``.
        frames = together(own, combine(trace, text), profile)
        passes.append({name: fill_ranks(frame, ranks) for name, frame in frames.items()})
        passes.append({"unreadable": damage.frame(record.name)})
    return Tables(together(*passes))


def load_or_parse(run: Run, refresh: bool = False) -> Tables:
    """``parse_run``, or what it made last time of the same raw files, kept in ``tables/``."""
    from traceview.parse import store

    kept = None if refresh else store.load(run)
    if kept is not None:
        return kept
    tables = parse_run(run)
    store.save(run, tables)
    return tables

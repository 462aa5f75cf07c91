"""Facts that rules and the report's sections share: each is worked out here, and only here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from traceview.derive.facts.attention import plain_attention, repeated_heads
from traceview.derive.facts.break_costs import break_costs
from traceview.derive.facts.breaks import break_sites
from traceview.derive.facts.host_stalls import (
    block_collections,
    busy_threads,
    collect_periods,
    host_stalls,
    kernel_tunings,
    launch_sources,
)
from traceview.derive.facts.outputs import output_differences, output_verdicts
from traceview.derive.facts.outside import (
    loader_restarts,
    outside_work,
    script_ends,
    sparse_coalesces,
    step_shares,
)
from traceview.derive.facts.partial_writes import partial_writes, whole_copies
from traceview.derive.facts.promotions import promotions
from traceview.derive.facts.recompile_causes import recompile_causes
from traceview.derive.facts.slice_gradients import slice_gradients
from traceview.derive.facts.slow_fusions import slow_fusions
from traceview.derive.facts.slow_loops import slow_loops
from traceview.derive.facts.slow_switches import slow_switches
from traceview.derive.facts.weight_copies import host_operands, weight_copies
from traceview.derive.facts.weight_work import weight_work
from traceview.derive.host_reads import read_places
from traceview.derive.region_costs import compile_regions
from traceview.tables import Tables

__all__ = ["add_facts", "add_log_facts"]

#: Name of a table of ``traceview.schema.facts`` → what makes it; None where it was not recorded.
#: A fact may read those before it.
_Facts = Mapping[str, Callable[[Tables], pl.DataFrame | None]]
_OF_LOGS: _Facts = {
    "compile_regions": compile_regions,
    "recompile_causes": recompile_causes,
    "break_sites": break_sites,
}
_OF_ALL: _Facts = {
    "outside_work": outside_work,
    "sparse_coalesces": sparse_coalesces,
    "loader_restarts": loader_restarts,
    "host_stalls": host_stalls,
    "block_collections": block_collections,
    "collect_periods": collect_periods,
    "kernel_tunings": kernel_tunings,
    "step_shares": step_shares,
    "busy_threads": busy_threads,
    "script_ends": script_ends,
    "read_places": read_places,
    "output_verdicts": output_verdicts,
    "output_differences": output_differences,
    "break_costs": break_costs,
    "slow_loops": slow_loops,
    "slow_switches": slow_switches,
    "partial_writes": partial_writes,
    "whole_copies": whole_copies,
    "slice_gradients": slice_gradients,
    "launch_sources": launch_sources,
    "slow_fusions": slow_fusions,
    "weight_copies": weight_copies,
    "weight_work": weight_work,
    "plain_attention": plain_attention,
    "repeated_heads": repeated_heads,
    "promotions": promotions,
    "host_operands": host_operands,
}


def add_log_facts(tables: Tables) -> None:
    """Put the facts that the recorded tables alone give: other derived tables are made of them."""
    _add(tables, _OF_LOGS)


def add_facts(tables: Tables) -> None:
    """Put the facts that ``tables``, which hold all other derived ones, give."""
    _add(tables, _OF_ALL)


def _add(tables: Tables, facts: _Facts) -> None:
    for name, make in facts.items():
        frame = make(tables)
        if frame is not None:
            tables.put(name, frame)

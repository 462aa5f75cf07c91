"""Tables → tables: pairing, attribution, accounting. Nothing here judges, nothing reads a log."""

from __future__ import annotations

from collections.abc import Mapping

from traceview.derive.callables import callable_speedups, focused
from traceview.derive.compile_costs import ahead_compiles, compile_costs
from traceview.derive.compiler import compiler_tables
from traceview.derive.compiler.passes import ddp_buckets
from traceview.derive.effects import effect_tables
from traceview.derive.facts import add_facts, add_log_facts
from traceview.derive.facts.clean_parts import clean_parts
from traceview.derive.host_reads import host_reads
from traceview.derive.job import job_tables
from traceview.derive.job.waits import rank_waits
from traceview.derive.limits import limit_tables, shape_gains
from traceview.derive.origins import origin_tables
from traceview.derive.pairs import block_pairs
from traceview.derive.profile import profile_tables
from traceview.derive.region_costs import region_costs
from traceview.derive.result_names import result_names
from traceview.derive.speedup import speedups
from traceview.derive.syntax import ReadSource
from traceview.derive.user_sources import (
    backward_calls,
    cached_calls,
    class_sites,
    lines_to_add,
    noted_lines,
    setting_sites,
    source_lines,
)
from traceview.derive.user_timers import script_timers
from traceview.derive.windows import windows
from traceview.tables import Tables, from_rows

__all__ = ["derive"]


def derive(
    tables: Tables, settings: Mapping[str, float], read_source: ReadSource | None = None
) -> Tables:
    """``tables`` with the derived ones added (an older derived table is replaced).

    ``settings`` are kept as table ``settings``; ``job_steps`` is read here. ``read_source`` gives
    the text of one of the user's files by its name in table ``sources``, None where there is no
    copy.
    """
    result = tables.copy()
    if tables.has("blocks"):
        result.put("block_pairs", block_pairs(tables))
    if tables.has("runs"):
        result.put("speedups", speedups(tables, result["block_pairs"], settings))
        result.put("callable_speedups", callable_speedups(tables, result["block_pairs"]))
        focused(result)
    add_log_facts(result)
    if tables.has("compiles"):
        result.put("compile_costs", compile_costs(tables))
        if tables.has("steps"):
            result.put("rank_waits", rank_waits(tables))
    if tables.has("log_records"):
        result.put("ahead_compiles", ahead_compiles(tables))
    if tables.has("graphs"):
        result.put("ddp_buckets", ddp_buckets(tables))
    found = windows(result)
    accounted = [window for window in found if not window.lost]
    for name, frame in origin_tables(result, accounted).items():
        result.put(name, frame)
    measured = result["speedups"].head(1).to_dicts()  # of the first rank
    step_ms = {s: row[f"{s}_ms"] for row in measured for s in ("eager", "compiled")}
    known = {stance: ms for stance, ms in step_ms.items() if ms is not None}
    for name, frame in profile_tables(result, known, found).items():
        result.put(name, frame)
    if tables.has("regions"):
        result.put("region_costs", region_costs(result, found))
    if tables.has("regions") and read_source is not None:
        result.put("script_timers", script_timers(tables, read_source))
        result.put("source_lines", source_lines(tables, read_source))
        result.put("result_names", result_names(tables, read_source))
    if tables.has("compile_targets") and read_source is not None:
        result.put("lines_to_add", lines_to_add(tables, read_source))
    if tables.has("sources") and read_source is not None:
        result.put("backward_calls", backward_calls(tables, read_source))
        result.put("noted_lines", noted_lines(tables, read_source))
        if tables.has("warnings"):
            result.put("cached_calls", cached_calls(tables, read_source))
        if tables.has("recompiles"):
            result.put("class_sites", class_sites(tables, read_source))
    if result.has("op_sources") and read_source is not None:
        result.put("host_reads", host_reads(result, read_source))
    if tables.has("environment") and read_source is not None:
        result.put("setting_sites", setting_sites(tables, read_source))
    made = compiler_tables(result, found)
    for name, frame in (made | limit_tables(result, accounted)).items():
        result.put(name, frame)
    if tables.has("ceilings"):  # then there was a look at shapes, too
        result.put("shape_gains", shape_gains(tables))
    for name, frame in effect_tables(result).items():
        result.put(name, frame)
    add_facts(result)
    if read_source is not None and (parts := clean_parts(result, read_source)) is not None:
        result.put("clean_parts", parts)
    for name, frame in job_tables(result).items():
        result.put(name, frame)
    kept = ({"name": name, "value": value} for name, value in settings.items())
    result.put("settings", from_rows("settings", kept))
    result.keep(windows, found)
    return result

"""What a rule needs, whether a run has it, and in words what it has not and how to record it.

A need is a table (``graph_breaks``), or what a table must hold besides:

    kernel_groups:eager          rows of that stance
    cache_events:warm            the second start, on the warm cache
    compiles.guard_latency_us    a column that some torch versions do not fill
    environment|warnings         one of several
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import polars as pl

from traceview.schema import all_tables
from traceview.tables import Tables

DIAGNOSE = "traceview diagnose SCRIPT"
DIAGNOSE_WARM = "traceview diagnose --warm SCRIPT"
DIAGNOSE_COMPARE = "traceview diagnose --compare-outputs SCRIPT"


class Record(NamedTuple):
    """``words`` and ``command`` are for a reader who has nothing yet.

    ``what`` and ``why`` are for a run that traceview collected itself, so that the same command
    would not record more.
    """

    words: str
    command: str
    what: str
    why: str


_NO_STEPS = "this run has none, usually because it had too few steps"


def _compiled(words: str, command: str) -> Record:
    """A log that torch writes when it compiles."""
    return Record(words, command, "a log of compiles", "torch wrote none in this run")


def _logged(what: str, name: str) -> Record:
    """A text log that torch writes where it is asked to."""
    why = "this torch does not write one, or the script turned it off"
    return Record(f"a log of {what}", f"TORCH_LOGS={name} python SCRIPT", f"a log of {what}", why)


def _collected(words: str) -> Record:
    return Record(words, DIAGNOSE, words, "this run has none")


STRUCTURED = _compiled("torch's structured log", "TORCH_TRACE=DIR python SCRIPT")
TIMED = Record(
    "timed blocks of eager and compiled steps", DIAGNOSE,
    "timed blocks of both stances", _NO_STEPS,
)  # fmt: skip
PROFILED = Record(
    "profiler windows of eager and compiled steps", DIAGNOSE, "profiler windows", _NO_STEPS
)

POSTMORTEM = Record(
    "the logs of a job, read together", "traceview postmortem PATH",
    "the logs of a job, read together", "a single run was diagnosed",
)  # fmt: skip

#: What the collector notes why there is none under.
COMPARISON = "comparison of outputs"
COMPARED = Record(
    "a comparison of eager and compiled outputs", DIAGNOSE_COMPARE,
    "a comparison of eager and compiled outputs", "only --compare-outputs makes one",
)  # fmt: skip

_TABLES = {
    STRUCTURED: (
        "compiles", "compile_phases", "compile_costs", "compile_regions", "guards", "guard_costs",
        "cache_events", "graphs", "ddp_buckets", "graph_passes", "generated_kernels",
        "kernel_calls", "symbols", "log_records", "first_calls", "configs", "cache_components",
        "collective_schedules", "compile_digests",
    ),
    _compiled("a log of graph breaks", "TORCH_LOGS=graph_breaks python SCRIPT"): (
        "graph_breaks", "break_sites", "break_costs",
    ),
    _compiled("a log of recompiles", "TORCH_LOGS=recompiles python SCRIPT"): (
        "recompiles", "recompile_causes",
    ),
    _logged("fusion decisions", "fusion"): ("fusions", "fusion_notes"),
    _logged("performance hints", "perf_hints"): ("perf_hints",),
    _logged("cudagraphs", "cudagraphs"): ("cudagraph_events",),
    _logged("Inductor's schedule", "schedule"): ("schedules",),
    _logged("Inductor's own estimates", "inductor_metrics"): ("inductor_metrics",),
    _collected("what torch wrote to stderr"): ("warnings", "autotune_choices"),
    _collected("traceview's own record of the run"): (
        "runs", "environment", "regions", "calls", "steps", "compile_intervals", "pattern_counts",
        "guard_timings", "resets", "profile_windows", "sources", "notes", "unreadable", "settings",
        "script_ends",
    ),
    _collected("the script's source and the stack of its first compiled call"): ("script_timers",),
    _collected("the sizes of the tensors in watched calls"): ("input_sizes",),
    _collected("the steps and compiles of every rank"): ("rank_waits",),
    _collected("a replay of profiled steps"): ("read_replays", "read_places"),
    _collected("the script's source and its settings"): ("setting_sites",),
    _collected("the script's source"): ("backward_calls", "host_reads", "source_lines"),
    _collected("memory peaks of eager and compiled steps"): ("memory",),
    _collected("what the device can do, measured at the run's end"): ("ceilings",),
    POSTMORTEM: (
        "inputs", "jobs", "traces", "job_ranks", "job_frames", "job_waits", "job_divergence",
        "job_configs", "job_failures", "job_stragglers", "cache_key_differences", "late_compiles",
        "idle_on_compile",
    ),
    COMPARED: ("output_trials", "output_checks", "output_verdicts"),
    TIMED: ("blocks", "block_pairs", "speedups"),
    PROFILED: (
        "accounting", "account_details", "step_counts", "kernel_groups", "region_costs",
        "kernels", "kernel_launches", "cpu_ops", "line_ops", "op_sources", "matched_kernels",
        "match_groups", "waterfall", "waterfall_rows", "kernel_limits", "step_limits", "call_path",
        "outside_work", "step_shares",
    ),
}  # fmt: skip
RECORD_OF = {table: record for record, tables in _TABLES.items() for table in tables}

#: A table of measurements without rows does not say "there was none" but "nothing was measured".
MEASURED = frozenset((*_TABLES[TIMED], *_TABLES[PROFILED], "memory", "ceilings")) - {"outside_work"}
#: The figure itself may be null: then one stance, or both, could not be timed.
FIGURES = {"speedups": "speedup"}
#: They compare: without eager steps there is nothing in them.
COMPARING = frozenset({"speedups", "block_pairs", "waterfall", "waterfall_rows"})
#: What torch writes only when it lowers a graph, and not when it finds one in a warm cache.
UNCACHED = frozenset(
    {"fusions", "fusion_notes", "perf_hints", "schedules", "inductor_metrics", "autotune_choices"}
)

_OR, _WARM, _STANCES = "|", "warm", ("eager", "compiled")


class _Lack(NamedTuple):
    """What a run that traceview collected has not got, why, and what would record it."""

    what: str
    why: str = ""
    command: str | None = None


def known() -> frozenset[str]:
    """The tables that a rule may need."""
    return frozenset(RECORD_OF)


def unknown(needs: Iterable[str]) -> list[str]:
    """Those of ``needs`` that no table, column, stance or pass stands for."""
    return [
        need
        for need in sorted(needs)
        if not all(_is_declared(*_parts(one)) for one in need.split(_OR))
    ]


def tables_of(needs: Iterable[str]) -> frozenset[str]:
    """The tables that these needs are about."""
    return frozenset(_parts(one)[0] for need in needs for one in need.split(_OR))


def in_words(needs: Iterable[str]) -> tuple[str, str]:
    """(what is needed, the command that records it); diagnose records everything at once."""
    said = [dict(_said(one) for one in need.split(_OR)) for need in needs]
    commands = {command for alternatives in said for command in alternatives.values()}
    words = dict.fromkeys(" or ".join(alternatives) for alternatives in said)
    return " and ".join(words), commands.pop() if len(commands) == 1 else DIAGNOSE


def unmet(
    tables: Tables, needs: Collection[str], *, gpu_only: bool = False
) -> tuple[str, str | None] | None:
    """(what a rule with these needs lacks in this run, the command that records it) or None."""
    if gpu_only and tables["runs"].height and set(tables["runs"]["device_name"]) == {"cpu"}:
        return "a GPU: this run was on a CPU", None
    missing = [
        need for need in sorted(needs) if not any(_is_met(tables, one) for one in need.split(_OR))
    ]
    if not missing:
        return None
    if not tables.has("runs"):
        return in_words(missing)
    reasons: dict[str, list[str]] = {}
    lacking = [_lacking(tables, need.split(_OR)[0]) for need in missing]
    for lack in dict.fromkeys(lacking):
        reasons.setdefault(lack.why, []).append(lack.what)
    words = (" and ".join(what) + (f": {why}" if why else "") for why, what in reasons.items())
    return "; ".join(words), next((lack.command for lack in lacking if lack.command), None)


def _parts(need: str) -> tuple[str, str, str]:
    """(table, ``:`` or ``.`` or nothing, what stands behind it)."""
    mark = next((mark for mark in ":." if mark in need), "")
    table, _, rest = need.partition(mark) if mark else (need, "", "")
    return table, mark, rest


def _is_declared(table: str, mark: str, rest: str) -> bool:
    if table not in RECORD_OF or table not in all_tables():
        return False
    columns = {column.name for column in all_tables()[table].columns}
    if mark == ":":
        return rest == _WARM or (rest in _STANCES and "stance" in columns)
    return not mark or rest in columns


def _is_met(tables: Tables, need: str) -> bool:
    name, mark, rest = _parts(need)
    if not tables.has(name):
        return False
    found = tables[name]
    if mark == ":" and rest == _WARM:
        return _WARM in {*tables["runs"]["pass"], *found["pass"]}
    if mark == ":":
        return not found.filter(pl.col("stance") == rest).is_empty()
    if found.is_empty():
        return name not in MEASURED and not (name in UNCACHED and _all_from_cache(tables))
    column = rest or FIGURES.get(name)
    return column is None or found[column].null_count() < found.height


def _said(need: str) -> tuple[str, str]:
    """(words, command) for a reader who has nothing yet."""
    table, mark, rest = _parts(need)
    record = RECORD_OF[table]
    if mark == ":" and rest == _WARM:
        return "a second start on the warm cache", DIAGNOSE_WARM
    return (_of_stance(record, rest) if mark == ":" else record.words), record.command


def _of_stance(record: Record, stance: str) -> str:
    return record.words.replace("eager and compiled steps", f"{stance} steps")


def _lacking(tables: Tables, need: str) -> _Lack:
    table, mark, rest = _parts(need)
    record = RECORD_OF[table]
    if mark == ":" and rest == _WARM and tables.has(table):
        return _Lack("a second start on the warm cache", command=DIAGNOSE_WARM)
    if mark == "." and tables.has(table):
        return _Lack(f"`{rest}` in table {table}", f"{_torch(tables)} did not record it")
    if (table in COMPARING or rest == "eager") and _left_eager_out(tables):
        why = "this run has none (--no-baseline leaves them out)"
        return _Lack(_of_stance(record, "eager"), why, DIAGNOSE)
    if table in UNCACHED and tables.has(table):
        return _Lack(record.what, "every graph of this run was in a warm cache", DIAGNOSE)
    if record is PROFILED and (error := _profiler_error(tables)):
        return _Lack(record.what, f"here the profiler failed ({error})")
    if record is COMPARED:
        return _Lack(record.what, _why_not_compared(tables) or record.why, record.command)
    if record in (TIMED, PROFILED):
        return _Lack(record.what, _why_not_timed(tables) or record.why)
    if record.command == DIAGNOSE and tables.has("regions") and not tables.has(table):
        # The collector told of this run, but not of that: it was an older one.
        return _Lack(record.what, "this run was recorded without", DIAGNOSE)
    return _Lack(record.what, record.why)


def _all_from_cache(tables: Tables) -> bool:
    looked = tables["cache_events"].filter(pl.col("cache") == "fx_graph")
    return "hit" in (events := set(looked["event"])) and "miss" not in events


def _left_eager_out(tables: Tables) -> bool:
    """Whether compiled steps were measured alone, and no second pass was run all eager."""
    stances = {*tables["blocks"]["stance"], *tables["profile_windows"]["stance"]}
    return stances == {"compiled"} and "baseline" not in set(tables["runs"]["pass"])


def _profiler_error(tables: Tables) -> str | None:
    windows = tables["profile_windows"].filter(pl.col("purpose").ne_missing("lines"))
    errors = windows["error"].drop_nulls()
    return str(errors[0])[:200] if len(errors) == windows.height and len(errors) else None


def _why_not_timed(tables: Tables) -> str | None:
    reasons = tables["speedups"]["reason"].drop_nulls()
    return str(reasons[0])[:300] if len(reasons) else None


def _why_not_compared(tables: Tables) -> str | None:
    noted = tables["notes"].filter(pl.col("what") == COMPARISON)
    reasons = [*noted["why"].drop_nulls(), *tables["output_trials"]["why"].drop_nulls()]
    return f"here it could not be made ({reasons[0]})"[:300] if reasons else None


def _torch(tables: Tables) -> str:
    versions = tables["runs"]["torch_version"].drop_nulls()
    return f"torch {versions[0]}" if len(versions) else "this torch"

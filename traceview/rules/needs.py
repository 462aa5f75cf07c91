"""What a rule needs, whether a run has it, and in words what it has not and how to record it.

A need is a table (``graph_breaks``), or what a table must hold besides:

    kernel_groups:eager          rows of that stance
    cache_events:warm            the second start, on the warm cache
    runs:baseline                the script all in eager, where it failed in a compiled call
    compiles.guard_latency_us    a column that some torch versions do not fill
    environment|warnings         one of several
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

import polars as pl

from traceview.schema import all_tables
from traceview.tables import Tables

DIAGNOSE = "traceview diagnose SCRIPT"
DIAGNOSE_WARM = "traceview diagnose --warm SCRIPT"


class Record(NamedTuple):
    """``words`` and ``command`` are for a reader who has nothing yet.

    ``what`` and ``why`` are for a run that traceview collected itself, so that the same command
    would not record more.
    """

    words: str
    command: str
    what: str
    why: str


_STEPS = "eager and compiled steps"
_NO_STEPS = "this run has none, usually because it had too few steps"


def _compiled(words: str, command: str) -> Record:
    """A log that torch writes when it compiles."""
    return Record(words, command, "a log of compiles", "torch wrote none in this run")


def _logged(what: str, name: str) -> Record:
    """A text log that torch writes where it is asked to."""
    why = "this torch does not write one, or the script turned it off"
    return Record(f"a log of {what}", f"TORCH_LOGS={name} python SCRIPT", f"a log of {what}", why)


def _collected(words: str, command: str = DIAGNOSE, why: str = "this run has none") -> Record:
    return Record(words, command, words, why)


STRUCTURED = _compiled("torch's structured log", "TORCH_TRACE=DIR python SCRIPT")
TIMED = Record(f"timed blocks of {_STEPS}", DIAGNOSE, "timed blocks of both stances", _NO_STEPS)
PROFILED = Record(f"profiler windows of {_STEPS}", DIAGNOSE, "profiler windows", _NO_STEPS)
POSTMORTEM = _collected(
    "the logs of a job, read together", "traceview postmortem PATH", "a single run was diagnosed"
)
COMPARED = _collected(
    "a comparison of eager and compiled outputs",
    "traceview diagnose --compare-outputs SCRIPT",
    "only --compare-outputs makes one",
)

_TABLES = {
    STRUCTURED: (
        "compiles", "compile_phases", "compile_costs", "compile_regions", "guards", "guard_costs",
        "cache_events", "graphs", "ddp_buckets", "graph_passes", "generated_kernels",
        "kernel_calls", "symbols", "log_records", "first_calls", "configs", "cache_components",
        "collective_schedules", "compile_digests", "promotions", "ahead_compiles",
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
        "guard_timings", "thread_looks", "thread_blocks", "threads_seen", "busy_threads",
        "slow_switches", "resets",
        "loader_starts", "loader_restarts", "collect_calls", "collect_periods",
        "profile_windows", "sources", "notes", "unreadable", "settings", "script_ends",
        "compile_lines", "untrained_weights", "late_hooks", "module_copies", "frozen_weights",
        "job_lengths", "lost_weights",
    ),
    _collected("what the script calls, or --compile compiled"): (
        "compile_targets", "lines_to_add",
    ),
    _collected("the script's source and the stack of its first compiled call"): ("script_timers",),
    _collected("the sizes of the tensors in watched calls"): ("input_sizes",),
    _collected("which watched calls ran compiled code", why="torch 2.8 or later reports it"): (
        "served_calls",
    ),
    _collected("a call made again at the script's end, compiled and in eager"): ("end_checks",),
    _collected("the steps and compiles of every rank"): ("rank_waits",),
    _collected("a replay of profiled steps"): ("read_replays", "read_places"),
    _collected("the script's source and its settings"): ("setting_sites",),
    _collected("what torch wrote to stderr, and the script's source"): ("cached_calls",),
    _collected("recompiles, and the script's source"): ("class_sites",),
    _collected("the script's source"): (
        "backward_calls", "host_reads", "source_lines", "noted_lines", "result_names",
    ),
    _collected("memory peaks of eager and compiled steps"): ("memory",),
    _collected("what the device can do, measured at the run's end"): (
        *("ceilings", "shape_trials", "shape_gains", "form_trials"),
    ),
    POSTMORTEM: (
        "inputs", "jobs", "traces", "job_ranks", "job_frames", "job_waits", "job_divergence",
        "job_configs", "job_failures", "job_stragglers", "cache_key_differences", "late_compiles",
        "idle_on_compile",
    ),
    COMPARED: (
        "output_trials", "output_checks", "output_verdicts", "output_differences", "output_faults",
    ),
    TIMED: ("blocks", "block_pairs", "block_collections", "speedups", "callable_speedups"),
    PROFILED: (
        "accounting", "account_details", "step_counts", "kernel_groups", "region_costs",
        "kernels", "kernel_launches", "cpu_ops", "line_ops", "op_sources", "matched_kernels",
        "match_groups", "library_pairs",
        "waterfall", "waterfall_rows", "kernel_limits", "step_limits", "call_path",
        "outside_work", "host_stalls", "step_shares", "slow_loops", "slow_fusions",
        "partial_writes", "whole_copies", "output_views", "launch_sources",
        "weight_copies", "clean_parts", "kernel_tunings", "host_operands", "sparse_coalesces",
        "slice_gradients", "weight_work", "plain_attention",
        "repeated_heads",
    ),
}  # fmt: skip
RECORD_OF = {table: record for record, tables in _TABLES.items() for table in tables}

#: A table of measurements without rows does not say "there was none" but "nothing was measured".
MEASURED = frozenset((*_TABLES[TIMED], *_TABLES[PROFILED], "memory", "ceilings"))
MEASURED -= {
    "outside_work",
    "host_stalls",
    "block_collections",
    "slow_loops",
    "slow_fusions",
    "partial_writes",
    "whole_copies",
    "output_views",
    "launch_sources",
    "weight_copies",
    "clean_parts",
    "kernel_tunings",
    "host_operands",
    "sparse_coalesces",
    "slice_gradients",
    "weight_work",
    "plain_attention",
    "repeated_heads",
}
#: The figure itself may be null: then one stance, or both, could not be timed.
FIGURES = {"speedups": "speedup"}
#: They compare: without eager steps there is nothing in them.
COMPARING = frozenset({"speedups", "block_pairs", "waterfall", "waterfall_rows", "library_pairs"})
#: What torch writes only when it lowers a graph, and not when it finds one in a warm cache.
UNCACHED = frozenset(
    {"fusions", "fusion_notes", "perf_hints", "schedules", "inductor_metrics", "autotune_choices"}
)

_WARM, _BASELINE, _STANCES = "warm", "baseline", ("eager", "compiled")


class _Lack(NamedTuple):
    """What a run that traceview collected has not got, why, and what would record it."""

    what: str
    why: str = ""
    command: str | None = None


class _Need(NamedTuple):
    """One alternative of a need: what stands behind its mark, ``:`` or ``.``, if it has one."""

    table: str
    mark: str = ""
    rest: str = ""

    @property
    def of_warm_start(self) -> bool:
        return (self.mark, self.rest) == (":", _WARM)

    def is_declared(self) -> bool:
        """Whether there is such a table, column, stance or pass."""
        if self.table not in RECORD_OF or self.table not in all_tables():
            return False
        columns = {column.name for column in all_tables()[self.table].columns}
        if self.mark == ":":
            return self.rest in (_WARM, _BASELINE) or (
                self.rest in _STANCES and "stance" in columns
            )
        return not self.mark or self.rest in columns

    def is_met(self, tables: Tables) -> bool:
        if not tables.has(self.table):
            return False
        found = tables[self.table]
        if self.of_warm_start:
            return _WARM in {*tables["runs"]["pass"], *found["pass"]}
        if (self.mark, self.rest) == (":", _BASELINE):
            called = (tables["regions"]["calls"].fill_null(0) > 0).any()
            failed = found["error_type"].is_not_null().any() and called
            return not failed or _BASELINE in set(found["pass"])
        if self.mark == ":":
            return not found.filter(pl.col("stance") == self.rest).is_empty()
        if found.is_empty() and self.table in UNCACHED:
            looked = set(tables["cache_events"].filter(pl.col("cache") == "fx_graph")["event"])
            return "hit" not in looked or "miss" in looked
        if found.is_empty():
            return self.table not in MEASURED
        column = self.rest or FIGURES.get(self.table)
        return column is None or found[column].null_count() < found.height

    def said(self) -> tuple[str, str]:
        """(words, command) for a reader who has nothing yet."""
        if self.of_warm_start:
            return "a second start on the warm cache", DIAGNOSE_WARM
        if (self.mark, self.rest) == (":", _BASELINE):
            return "the script's run all in eager", DIAGNOSE
        record = RECORD_OF[self.table]
        stances = self.rest if self.mark == ":" else "eager and compiled"
        return record.words.replace(_STEPS, f"{stances} steps"), record.command

    def lack(self, tables: Tables) -> _Lack:
        """What is missing, in a run that traceview collected."""
        record, there = RECORD_OF[self.table], tables.has(self.table)
        if self.of_warm_start and there:
            return _Lack("a second start on the warm cache", command=DIAGNOSE_WARM)
        if (self.mark, self.rest) == (":", _BASELINE) and there:
            why = "this run has none (--no-baseline leaves it out)"
            return _Lack("the script's run all in eager", why, DIAGNOSE)
        if self.mark == "." and there:
            version = _first(tables["runs"]["torch_version"])
            torch = f"torch {version}" if version else "this torch"
            return _Lack(f"`{self.rest}` in table {self.table}", f"{torch} did not record it")
        if self.table in COMPARING or self.rest == "eager":
            # Compiled steps were measured alone, and no second pass was run all eager.
            stances = {*tables["blocks"]["stance"], *tables["profile_windows"]["stance"]}
            if stances == {"compiled"} and "baseline" not in set(tables["runs"]["pass"]):
                what, _ = _Need(self.table, ":", "eager").said()
                why = "this run has none (--no-baseline leaves them out)"
                return _Lack(what, why, DIAGNOSE)
        if self.table in UNCACHED and there:
            return _Lack(record.what, "every graph of this run was in a warm cache", DIAGNOSE)
        why, command = record.why, record.command if record is COMPARED else None
        if record is COMPARED:
            # The collector notes under this name why there is none.
            noted = tables["notes"].filter(pl.col("what") == "comparison of outputs")["why"]
            reason = _first(noted) or _first(tables["output_trials"]["why"])
            why = f"here it could not be made ({reason})"[:300] if reason else why
        elif record in (TIMED, PROFILED):
            why = _first(tables["speedups"]["reason"]) or why
            windows = tables["profile_windows"].filter(pl.col("purpose").ne_missing("lines"))
            if record is PROFILED and windows.height and not windows["error"].null_count():
                why = f"here the profiler failed ({str(windows['error'][0])[:200]})"
        elif record.command == DIAGNOSE and tables.has("regions") and not there:
            # An older collector recorded this run, without what the rule needs.
            why, command = "this run was recorded without", DIAGNOSE
        return _Lack(record.what, why, command)


def unknown(needs: Iterable[str]) -> list[str]:
    """Those of ``needs`` that no table, column, stance or pass stands for."""
    return [
        need for need in sorted(needs) if not all(one.is_declared() for one in _alternatives(need))
    ]


def _alternatives(need: str) -> list[_Need]:
    """The parts of a need, of which one is enough."""
    return [_Need(*re.split("([:.])", one, maxsplit=1)) for one in need.split("|")]


def in_words(needs: Iterable[str]) -> tuple[str, str]:
    """(what is needed, the command that records it); diagnose records everything at once."""
    said = [dict(one.said() for one in _alternatives(need)) for need in needs]
    commands = {command for either in said for command in either.values()}
    words = dict.fromkeys(" or ".join(either) for either in said)
    return " and ".join(words), commands.pop() if len(commands) == 1 else DIAGNOSE


def unmet(
    tables: Tables, needs: Collection[str], *, gpu_only: bool = False
) -> tuple[str, str | None] | None:
    """(what a rule with these needs lacks in this run, the command that records it) or None."""
    if gpu_only and tables["runs"].height and set(tables["runs"]["device_name"]) == {"cpu"}:
        return "a GPU: this run was on a CPU", None
    missing = [
        need for need in sorted(needs) if not any(one.is_met(tables) for one in _alternatives(need))
    ]
    if not missing:
        return None
    if not tables.has("runs"):
        return in_words(missing)
    reasons: dict[str, list[str]] = {}
    lacking = [_alternatives(need)[0].lack(tables) for need in missing]
    for lack in dict.fromkeys(lacking):
        reasons.setdefault(lack.why, []).append(lack.what)
    words = (" and ".join(what) + (f": {why}" if why else "") for why, what in reasons.items())
    return "; ".join(words), next((lack.command for lack in lacking if lack.command), None)


def _first(noted: pl.Series) -> str | None:
    """The first text that is not null, cut to what a sentence has room for."""
    known = noted.drop_nulls()
    return str(known[0])[:300] if len(known) else None

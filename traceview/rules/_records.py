"""Where each table is read from: in words, and the command that records it."""

from __future__ import annotations

from typing import NamedTuple

DIAGNOSE = "traceview diagnose SCRIPT"
DIAGNOSE_WARM = "traceview diagnose --warm SCRIPT"
DIAGNOSE_COMPARE = "traceview diagnose --compare-outputs SCRIPT"


class Record(NamedTuple):
    """``words`` and ``command`` are for somebody who has nothing yet.

    ``what`` and ``why`` are said of a run that traceview collected itself, so that the same command
    would not record more.
    """

    words: str
    command: str
    what: str
    why: str


_NO_STEPS = "this run has none, as a rule for want of steps"


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

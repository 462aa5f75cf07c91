"""What a rule needs, in words: which record a table is read from, and the command that makes it."""

from __future__ import annotations

from collections.abc import Iterable

_DIAGNOSE = "traceview diagnose SCRIPT"
_STRUCTURED = ("torch's structured log", "TORCH_TRACE=DIR python SCRIPT")
_RECOMPILES = ("a log of recompiles", "TORCH_LOGS=recompiles python SCRIPT")
_BREAKS = ("a log of graph breaks", "TORCH_LOGS=graph_breaks python SCRIPT")
_COLLECTED = ("traceview's own record of the run", _DIAGNOSE)
_TIMED = ("timed blocks of eager and compiled steps", _DIAGNOSE)
_PROFILED = ("profiler windows of eager and compiled steps", _DIAGNOSE)

#: What a run that traceview collected itself has not got.
_NOT_REACHED = {
    _STRUCTURED: "a log of compiles: torch wrote none in this run",
    _RECOMPILES: "a log of compiles: torch wrote none in this run",
    _BREAKS: "a log of compiles: torch wrote none in this run",
    _TIMED: "timed blocks: this run has none, as a rule for want of steps",
    _PROFILED: "profiler windows: this run has none, as a rule for want of steps",
}

_RECORDS = {
    "graph_breaks": _BREAKS,
    "recompiles": _RECOMPILES,
    "compiles": _STRUCTURED,
    "graphs": _STRUCTURED,
    "cudagraph_events": ("a log of cudagraphs", "TORCH_LOGS=cudagraphs python SCRIPT"),
    "runs": _COLLECTED,
    "regions": _COLLECTED,
    "calls": _COLLECTED,
    "environment": _COLLECTED,
    "script_timers": ("the script's source and the stack of its first compiled call", _DIAGNOSE),
    "memory": ("memory peaks of eager and compiled blocks", _DIAGNOSE),
    "speedups": _TIMED,
    "accounting": _PROFILED,
    "step_counts": _PROFILED,
    "kernel_groups": _PROFILED,
    "region_costs": _PROFILED,
}


def known() -> frozenset[str]:
    """The tables that a rule may need."""
    return frozenset(_RECORDS)


def in_words(missing: Iterable[str], recorded: bool = False) -> tuple[str, str | None]:
    """(what is missing, the command that records it); diagnose records everything at once.

    ``recorded``: traceview collected this run itself, so the same command would not record more.
    """
    records = list(dict.fromkeys(_RECORDS[name] for name in missing))
    if recorded:
        wanted = dict.fromkeys(_NOT_REACHED.get(record, record[0]) for record in records)
        return " and ".join(wanted), None
    commands = {command for _, command in records}
    words = " and ".join(words for words, _ in records)
    return words, commands.pop() if len(commands) == 1 else _DIAGNOSE

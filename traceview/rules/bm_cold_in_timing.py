"""
## What it finds
A timer of the script's own that runs around the first compiled call, so that its figure includes
the compile time.

## Why it costs
It costs no time; it makes the script print the wrong figure. A compile of seconds in a loop of
milliseconds makes compiled code look many times slower than it is.

## Evidence
The script's source: a clock is read before the line that led to the first call and again after
it (in the same function, in a context manager of the same file, by `timeit` or by pytest-benchmark
without a warm-up), and compiling took more than 20 % of the time of all compiled calls that were
recorded. It is information where the second reading is inside the loop that makes the calls (a
running rate, in which the compile matters less and less), where a loop starts the clock again
around the same callable (its first round alone holds the compile), and where the script only prints
the time as it is: how long the job took, not how long a call takes.

## What to do
Call it a few times before the clock starts (three times with cudagraphs: warm-up, record,
replay), and synchronize the GPU before reading the clock.

## Settings
- `least_compile_share`: part of the compiled calls' time that compiling must take.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- https://docs.pytorch.org/docs/stable/torch.compiler_faq.html
- torch/utils/benchmark/utils/timer.py
- https://github.com/pytorch/pytorch/issues/104601
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Snippet,
    Tables,
    first_rank,
    percent,
    rows,
    seconds,
)
from traceview.words import names

CODE = "TV901"
NEEDS = frozenset({"script_timers", "calls"})
SEVERITIES = ("warning", "info")

#: Below a fifth, the first call hardly moves the figure that the script prints.
LEAST_COMPILE_SHARE = 0.20
#: Of table ``script_timers``: other figures of the same clock are right, or it is only printed.
_HARMLESS = ("read_in_loop", "shown_whole", "starts_again")


def check(tables: Tables, *, least_compile_share: float = LEAST_COMPILE_SHARE) -> Iterator[Finding]:
    """One finding for each clock of the script's."""
    calls = first_rank(rows(tables, "calls", outermost=True))
    seen: set[tuple[str, int, int]] = set()
    for timer in first_rank(rows(tables, "script_timers")):
        file, start, read = key = timer["file"], timer["start_line"], timer["read_line"]
        # A clock around one single call is there to show what the first call takes.
        if not (timer["spans_first_call"] and timer["calls_in_loop"]) or key in seen:
            continue
        seen.add(key)
        own = [row for row in calls if row["region_id"] == timer["region_id"]]
        total = sum(row["host_ms"] for row in own) / 1e3
        compiling = sum(row["host_ms"] for row in own if row["compiles_inside"]) / 1e3
        if not total or compiling / total <= least_compile_share:
            continue
        at = names.lines(start, read)
        clock, call = timer["clock"], timer["call_line"]
        read_at = f"{clock} at {at}, first call at line {call}"
        share = f"{seconds(compiling)} of {seconds(total)} ({percent(compiling / total)})"
        took = f"calls that compiled took {share} of the calls that were recorded one at a time"
        first_only = " in its first round" if timer["starts_again"] else ""
        yield Finding(
            code=CODE,
            rule="bm-cold-in-timing",
            severity="info" if any(timer[name] for name in _HARMLESS) else "warning",
            title=f"The script's own timer ({at}) includes the compile{first_only}",
            explanation=(
                f"{clock} is read at line {start}, the first compiled call follows at line {call}, "
                f"and the time is taken at line {read}: it is not the time of a warm step. "
                "traceview's own figures leave the compile out."
            ),
            cost=Cost(
                about=f"no time, but a wrong figure: it includes {seconds(compiling)} of compiling"
            ),
            confidence="derived",
            location=Location(file, start, timer["function"]),
            evidence=(
                Evidence(read_at, "script_timers"),
                Evidence(took, "calls"),
            ),
            what_to_do="Warm up before the clock starts, and report the first call separately.",
            snippet=Snippet(
                "python", "for _ in range(3):\n    compiled(x)  # before the clock starts"
            ),
        )

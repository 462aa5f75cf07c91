"""
## What it finds
A timer of the script's own that runs around the first compiled call, so that its figure holds the
compile time.

## Why it costs
It costs no time; it makes the script print the wrong figure. A compile of seconds in a loop of
milliseconds makes compiled code look many times slower than it is.

## Evidence
The script's source: a clock is read before the line that led to the first call and again after
it. And compiling took more than 20 % of the time of all compiled calls that were seen. It is
information where the second reading stands in the loop that makes the calls (a rate that is shown
as the job goes on, which forgets the compile in time), and where the script only prints the time as
it is: how long a job took, and no figure of a call.

## What to do
Call it a few times before the clock starts (three times with cudagraphs: warm-up, record,
replay), and synchronise the GPU before reading the clock.

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

from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Cost, Evidence, Finding, Location, Snippet
from traceview.tables import Tables
from traceview.words.numbers import percent, seconds

CODE = "TV901"
NEEDS = frozenset({"script_timers", "calls"})

#: Below a fifth, the first call hardly moves the figure that the script prints.
LEAST_COMPILE_SHARE = 0.20


def check(tables: Tables, *, least_compile_share: float = LEAST_COMPILE_SHARE) -> Iterator[Finding]:
    """One finding a clock of the script's."""
    calls = [row for row in first_rank(rows(tables, "calls")) if row["outermost"]]
    seen: set[tuple[str, int, int]] = set()
    for timer in first_rank(rows(tables, "script_timers")):
        key = (timer["file"], timer["start_line"], timer["read_line"])
        # A clock around one single call is there to show what the first call takes.
        if not (timer["spans_first_call"] and timer["calls_in_loop"]) or key in seen:
            continue
        seen.add(key)
        own = [row for row in calls if row["region_id"] == timer["region_id"]]
        total = sum(row["host_ms"] for row in own)
        compiling = sum(row["host_ms"] for row in own if row["compiles_inside"])
        if total and compiling / total > least_compile_share:
            yield _finding(timer, compiling, total)


def _finding(timer: Row, compiling: float, total: float) -> Finding:
    return Finding(
        code=CODE,
        rule="bm-cold-in-timing",
        severity="info" if timer["read_in_loop"] or timer["shown_whole"] else "warning",
        title=(
            f"The script's own timer (lines {timer['start_line']} to {timer['read_line']}) "
            "includes the compile"
        ),
        explanation=(
            f"{timer['clock']} is read at line {timer['start_line']}, the first compiled call "
            "follows "
            f"at line {timer['call_line']}, and the figure is taken at line "
            f"{timer['read_line']}: it "
            "is no figure of a warm step. traceview's own figures leave the compile out."
        ),
        cost=Cost(
            about=f"no time, but a wrong figure: {seconds(compiling / 1e3)} of compiling are in it"
        ),
        confidence="derived",
        location=Location(timer["file"], timer["start_line"], timer["function"]),
        evidence=(
            Evidence(
                f"{timer['clock']} at lines {timer['start_line']} and {timer['read_line']}, "
                "first call "
                f"at line {timer['call_line']}",
                "script_timers",
            ),
            Evidence(
                f"calls that compiled took {seconds(compiling / 1e3)} of {seconds(total / 1e3)} "
                f"({percent(compiling / total)}) of the calls that were seen one by one",
                "calls",
            ),
        ),
        what_to_do=(
            "Warm up before the clock starts, and report the first call as a figure of its own."
        ),
        snippet=Snippet("python", "for _ in range(3):\n    compiled(x)  # before the clock starts"),
    )

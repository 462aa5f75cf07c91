"""
## What it finds
A thread of the script's own that runs Python all the time while the steps run: a loop that polls, a
feeder that makes batches in Python.

## Why it costs
One thread at a time runs Python. Whenever the thread of the steps gives Python's lock away (in a
backward, a wait, a large operator), it gets it back only when the other one lets go, 5 ms later
(`sys.getswitchinterval()`). Launches come late and operators wait, in eager and compiled steps
alike: compiling can't shorten that.

## Evidence
Between timed blocks the collector gives the lock away for a moment. It is back after microseconds;
here, in most of the looks, after half of the switch interval or more, and a thread of the script's
has had a processor meanwhile. Its stack frame shows the line. The cost is the time for which the
steps' thread wants no processor in timed blocks, so it is an upper limit: it holds other waits as
well. Calls of several threads that are steps themselves are not reported.

## What to do
Let the thread sleep between two looks (`event.wait(0.1)`), do its work on whole tensors or arrays
(which let go of the lock), or move it to another process: DataLoader workers, `multiprocessing`.

## References
- https://docs.python.org/3/library/sys.html#sys.setswitchinterval
- https://docs.pytorch.org/docs/stable/data.html
- torch/utils/data/dataloader.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Tables,
    first_rank,
    milliseconds,
    rows,
    severity,
    short,
)

CODE = "TV423"
NEEDS = frozenset({"busy_threads"})
SEVERITIES = ("warning", "info")

#: Of the switch interval: an idle lock is back after a thousandth of it.
LEAST_WAIT = 0.5
#: Part of the looks in which the thread ran.
LEAST_RAN = 0.5
#: One look, or two, may meet a thread by chance.
LEAST_LOOKS = 3


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: the thread that has most processor time."""
    if any(row["other_thread_calls"] for row in rows(tables, "blocks")):
        return
    for thread in first_rank(rows(tables, "busy_threads")):
        waits, looks = thread["lock_wait_ms"], thread["looks"]
        if looks < LEAST_LOOKS or thread["ran_looks"] < LEAST_RAN * looks:
            continue
        if waits < LEAST_WAIT * thread["interval_ms"] or thread["file"] is None:
            continue
        place = Location(thread["file"], thread["line"], thread["function"])
        ms = thread["step_waits_ms"]
        cost = f" for up to {milliseconds(ms)}" if ms else ""
        yield Finding(
            code=CODE,
            rule="ap-busy-thread",
            severity=severity(tables, ms),
            title=(
                f"Thread {thread['name']} runs Python at {short(place)} and holds Python's lock: "
                f"each step waits{cost}"
            ),
            explanation=(
                "One thread at a time runs Python. The thread of the steps gives the lock away "
                f"again and again, and has it back {milliseconds(waits)} later."
            ),
            cost=Cost(ms, None, "time of a compiled step in which its thread wants no processor"),
            confidence="derived",
            location=place,
            evidence=(
                Evidence(
                    f"it runs meanwhile in {thread['ran_looks']} of {looks} looks, and "
                    f"{thread['seen']} of them meet {thread['function']}()",
                    "busy_threads",
                ),
                Evidence(
                    f"Python's lock, given away for a moment: back after {milliseconds(waits)}, "
                    f"median of {looks}",
                    "thread_looks",
                ),
            ),
            what_to_do=(
                "Let the thread sleep between two looks (event.wait(0.1)), let it work on whole "
                "tensors or arrays, or move it to another process: DataLoader workers, "
                "multiprocessing."
            ),
        )
        return

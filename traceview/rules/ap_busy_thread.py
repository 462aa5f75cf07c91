"""
## What it finds
A thread of the script's own that runs Python while the steps run: a loop that polls, a feeder that
makes batches in Python, a pool of threads that take turns.

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

Or threads have a processor for a fifth of a compiled step or more, read at the edges of timed
blocks, and for as long the steps' thread wants none and the GPU has nothing to do. Where they are
is looked at every millisecond between blocks. The cost is the shorter of both times; on a GPU,
where the steps' thread also waits while torch's own thread launches the backward, it is
information.

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
    step_ms,
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
#: Part of a step for which it runs while nothing of the step does.
LEAST_SHARE = 0.2

_HELD = (
    "One thread at a time runs Python. The thread of the steps gives the lock away again and "
    "again, and has it back {} later."
)
_WAITS = (
    "One thread at a time runs Python. The thread of the steps waits for the lock, or for what the "
    "other makes: {} of a step."
)


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: the thread, or the pool, that has most processor time."""
    if any(row["other_thread_calls"] for row in rows(tables, "blocks")):
        return
    step = step_ms(tables, "compiled") or 0.0
    accounts = first_rank(rows(tables, "accounting", stance="compiled", clock="device"))
    busy = sum(row["ms"] or 0.0 for row in accounts if row["kind"] == "busy")
    threads = [row for row in first_rank(rows(tables, "busy_threads")) if row["file"]]
    threads.sort(key=lambda row: -(row["step_ran_ms"] or 0.0))
    for thread in threads:
        looks, away = thread["looks"], thread["lock_wait_ms"]
        held = away >= LEAST_WAIT * thread["interval_ms"] and looks >= LEAST_LOOKS
        held &= thread["ran_looks"] >= LEAST_RAN * looks
        ran, waits = thread["step_ran_ms"] or 0.0, thread["step_waits_ms"]
        # Neither the steps' thread nor the device works meanwhile.
        beside = min(ran, (waits or 0.0) - busy)
        works = step > 0 and beside >= LEAST_SHARE * step
        if not (held or works):
            continue
        ms = waits if held else beside
        place = Location(thread["file"], thread["line"], thread["function"])
        pool = thread["name"].endswith("*")
        who = f"Threads {thread['name']} run" if pool else f"Thread {thread['name']} runs"
        what = f"and {'hold' if pool else 'holds'} Python's lock"
        known = f"processor time in compiled blocks: {milliseconds(ran)}"
        evidence = [Evidence(known, "thread_blocks")] if works else []
        if works:
            what = f"for {milliseconds(ran)} of a step"
        if held:
            evidence += [
                Evidence(
                    f"it runs meanwhile in {thread['ran_looks']} of {looks} looks, and "
                    f"{thread['seen']} of them meet {thread['function']}()",
                    "busy_threads",
                ),
                Evidence(
                    f"Python's lock is back after {milliseconds(away)}, median", "thread_looks"
                ),
            ]
        cost = f" for up to {milliseconds(ms)}" if ms else ""
        about = "time of a compiled step in which its thread wants no processor"
        yield Finding(
            code=CODE,
            rule="ap-busy-thread",
            # On a GPU the backward is launched by a thread of torch's, for which that of the steps
            # waits as well.
            severity=severity(tables, ms) if held or not accounts else "info",
            title=f"{who} Python at {short(place)} {what}: each step waits{cost}",
            explanation=(_HELD if held else _WAITS).format(milliseconds(away if held else waits)),
            cost=Cost(ms, None, about if held else f"{about}, and the GPU has nothing to do"),
            confidence="derived",
            location=place,
            evidence=tuple(evidence),
            what_to_do=(
                "Let the thread sleep between two looks (event.wait(0.1)), let it work on whole "
                "tensors or arrays, or move it to another process: DataLoader workers, "
                "multiprocessing."
            ),
        )
        return

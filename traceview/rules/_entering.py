"""What the rules on entering compiled code share: how long it takes, and what is entered."""

from __future__ import annotations

from traceview.rules.kit import Row, Tables, first_rank, rows

#: Idle time of a device behind torch.compile's own work on the host.
_WAITED_FOR = frozenset({"idle_guards", "idle_call_overhead"})
_WRAPPER = "overhead_generated_wrapper"
_NO_PART = ("unexplained", "machine_speed")
#: Callables that a title has room for.
_MOST_NAMES = 2


def entering_ms(
    tables: Tables, compiled: float, *, launches: bool, more: float = 0.0
) -> tuple[float, float]:
    """What of a timed step of ``compiled`` ms entering compiled code takes, and its work.

    ``launches``: with what launches its kernels, which one entry for many calls still runs.
    ``more``: what is counted as a device's wait for launches and is no launch's.
    """
    accounts = first_rank(rows(tables, "accounting", stance="compiled"))
    without = () if launches else (_WRAPPER,)
    overhead: float = more + sum(
        row["ms"]
        for row in accounts
        if (row["kind"] == "overhead" or row["category"] in _WAITED_FOR)
        and row["category"] not in without
    )
    work: float = sum(
        row["ms"] for row in accounts if row["kind"] == "busy" or row["category"] in without
    )
    # Where the profiled step was a slower one than those that were timed, each part was; where it
    # was a faster one, so far as the machine's speed is why.
    parts: float = sum(row["ms"] for row in accounts if row["kind"] not in _NO_PART)
    speed: float = sum(row["ms"] for row in accounts if row["kind"] == "machine_speed")
    scale = min(1.0 + max(0.0, speed) / parts, compiled / parts) if parts else 1.0
    return overhead * scale, work * scale


def entered_regions(tables: Tables) -> tuple[list[Row], str]:
    """The regions that a step enters, the one that is called most first, and their names.

    What is called less than half as often as another region is not part of every step.
    """
    regions = sorted(first_rank(rows(tables, "regions")), key=lambda row: -(row["calls"] or 0))
    entered = [row for row in regions if 2 * (row["calls"] or 0) >= (regions[0]["calls"] or 0)]
    known = (row["name"] for row in entered if row["name"])
    names = list(dict.fromkeys(name.rpartition("<locals>.")[2] for name in known))
    if len(names) > _MOST_NAMES:
        names[_MOST_NAMES - 1 :] = [f"{len(names) - _MOST_NAMES + 1} other callables"]
    return entered, " and ".join(names) or "the compiled callable"

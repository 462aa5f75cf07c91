"""Caches over all ranks: what was found, what was not, and what differs between the keys."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from pathlib import PurePath

import polars as pl
from msgspec.structs import replace

from traceview.diagnosis.focus import Row, cut, struct_of
from traceview.diagnosis.job.model import Bypass, CacheRow, JobCaches, KeyDifference, Side
from traceview.diagnosis.job.subject import TEXT, VALUE, Subject
from traceview.words import names

MOST_DIFFERENCES, MOST_BYPASSES, MOST_FUNCTIONS = 20, 20, 5


def caches(subject: Subject) -> JobCaches:
    """Counts by cache, reasons of bypasses, and differences, what cost most first."""
    events = subject.frame("cache_events")
    rows = []
    for cache in events["cache"].drop_nulls().unique(maintain_order=True):
        mine = events.filter(pl.col("cache") == cache)
        counts = mine.group_by("event", maintain_order=True).len().sort("len", descending=True)
        rows.append(CacheRow(cache, dict(counts.iter_rows()), subject.ranks(set(mine["member"]))))
    bypassed = (
        events.filter(pl.col("event") == "bypass")
        .group_by("cache", "reason", maintain_order=True)
        .agg(pl.len().alias("times"), pl.col("member").unique())
        .sort("times", descending=True)
    )
    bypasses = (
        Bypass(cache, cut(reason, TEXT) or "no reason was logged", times, subject.ranks(members))
        for cache, reason, times, members in bypassed.head(MOST_BYPASSES).iter_rows()
    )
    found = tuple(differences(subject).values())
    more = max(0, len(found) - MOST_DIFFERENCES)
    return JobCaches(tuple(rows), tuple(bypasses), found[:MOST_DIFFERENCES], more)


def differences(subject: Subject) -> dict[int, KeyDifference]:
    """Table ``cache_key_differences``, its sides put together; by number, in order."""
    found = {}
    rows = subject.rows("cache_key_differences")
    for number, grouped in groupby(rows, key=itemgetter("difference")):
        mine = list(grouped)
        sides = tuple(
            Side(
                ranks=subject.ranks(row["ranks"]),
                value=cut(row["value"], VALUE),
                outcome=row["outcome"],
                pass_name=row["side_pass"],
            )
            for row in mine
        )
        functions = tuple(PurePath(name).name for name in mine[-1]["functions"] or ())
        known = struct_of(
            KeyDifference, mine[-1], sides=sides, functions=functions[:MOST_FUNCTIONS], text=""
        )
        name, usual, missed = names.cache(known.cache), sides[0], sides[-1]
        if known.between == "attempts":
            head = f"{missed.ranks.text} missed in the {name} what the start before had stored"
        elif usual.outcome == "hit" and missed.outcome == "miss":
            head = f"{missed.ranks.text} missed in the {name} where {usual.ranks.text} hit"
        else:
            head = f"{missed.ranks.text} used other keys for the {name} than {usual.ranks.text}"
        found[number] = replace(known, text=f"{head}: {why(known)}")
    return found


def why(found: KeyDifference) -> str:
    """``component inductor_config[max_autotune] differs``."""
    return {
        "folder": "its keys are the same: the graphs were not in the cache",
        "unknown": "its keys differ; what in them was not recorded",
        "graph": f"the graph itself differs (component {found.component})",
        "inputs": f"its inputs differ (component {found.component})",
    }.get(found.kind, f"component {found.component} differs")


def misses(subject: Subject) -> list[tuple[Row, KeyDifference]]:
    """Sides of differences that missed and lost time by it, the most expensive difference first."""
    found = differences(subject)
    rows = subject.rows("cache_key_differences")
    lost = (row for row in rows if row["outcome"] != "hit" and row["seconds"])
    return [(row, found[row["difference"]]) for row in lost]

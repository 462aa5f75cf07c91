"""Caches over all ranks: what was found, what was not, and what differs between the keys."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from pathlib import PurePath

import polars as pl

from traceview.diagnosis.job.model import Bypass, CacheRow, JobCaches, KeyDifference, Side
from traceview.diagnosis.job.subject import (
    Row,
    Subject,
    cut,
    members_of,
)
from traceview.words import names

MOST_DIFFERENCES, MOST_BYPASSES, MOST_FUNCTIONS = 20, 20, 5


def caches(subject: Subject) -> JobCaches:
    """Counts by cache, reasons of bypasses, and differences, what cost most first."""
    found = differences(subject)
    return JobCaches(
        _rows(subject),
        _bypasses(subject),
        found[:MOST_DIFFERENCES],
        max(0, len(found) - MOST_DIFFERENCES),
    )


def differences(subject: Subject) -> tuple[KeyDifference, ...]:
    """Table ``cache_key_differences``, its sides put together."""
    rows = subject.rows("cache_key_differences")
    by_number = groupby(rows, key=itemgetter("difference"))
    return tuple(_difference(subject, list(sides)) for _, sides in by_number)


def _difference(subject: Subject, rows: list[Row]) -> KeyDifference:
    last = rows[-1]
    sides = tuple(
        Side(
            ranks=subject.ranks(row["ranks"]),
            value=cut(row["value"], 200),
            outcome=row["outcome"],
            pass_name=row["side_pass"],
        )
        for row in rows
    )
    functions = tuple(PurePath(name).name for name in last["functions"] or ())
    return KeyDifference(
        cache=last["cache"],
        component=last["component"],
        kind=last["kind"],
        between=last["between"],
        sides=sides,
        functions=functions[:MOST_FUNCTIONS],
        compiles=last["compiles"],
        seconds=last["seconds"],
        text=_text(last, sides),
    )


def why(found: KeyDifference) -> str:
    """``component inductor_config[max_autotune] differs``."""
    if found.kind == "folder":
        return "its keys are the same: the graphs were not in the cache"
    if found.kind == "unknown":
        return "its keys differ; what in them was not recorded"
    what = {"graph": "the graph itself differs", "inputs": "its inputs differ"}.get(found.kind)
    if what:
        return f"{what} (component {found.component})"
    return f"component {found.component} differs"


def _text(row: Row, sides: tuple[Side, ...]) -> str:
    name, missed, usual = names.cache(row["cache"]), sides[-1], sides[0]
    if row["between"] == "attempts":
        head = f"{missed.ranks.text} missed in the {name} what the start before had stored"
    elif usual.outcome == "hit" and missed.outcome == "miss":
        head = f"{missed.ranks.text} missed in the {name} where {usual.ranks.text} hit"
    else:
        head = f"{missed.ranks.text} used other keys for the {name} than {usual.ranks.text}"
    found = KeyDifference(
        row["cache"], row["component"], row["kind"], row["between"], sides, (), 0, None, ""
    )
    return f"{head}: {why(found)}"


def for_member(
    found: tuple[KeyDifference, ...], rows: list[Row], member: str
) -> KeyDifference | None:
    """The most expensive difference that ``member`` missed by; ``rows`` are the table's."""
    missed = [row for row in rows if row["outcome"] != "hit" and row["seconds"]]
    lost = {row["difference"] for row in missed if member in members_of(row["ranks"])}
    numbers = list(dict.fromkeys(row["difference"] for row in rows))
    return next((item for number, item in zip(numbers, found, strict=True) if number in lost), None)


def _rows(subject: Subject) -> tuple[CacheRow, ...]:
    events = subject.frame("cache_events")
    found = []
    for cache in events["cache"].drop_nulls().unique(maintain_order=True):
        mine = events.filter(pl.col("cache") == cache)
        counts = mine.group_by("event", maintain_order=True).len().sort("len", descending=True)
        found.append(CacheRow(cache, dict(counts.iter_rows()), subject.ranks(set(mine["member"]))))
    return tuple(found)


def _bypasses(subject: Subject) -> tuple[Bypass, ...]:
    events = subject.frame("cache_events")
    groups = (
        events.filter(pl.col("event") == "bypass")
        .group_by("cache", "reason", maintain_order=True)
        .agg(pl.len().alias("times"), pl.col("member").unique())
        .sort("times", descending=True)
    )
    return tuple(
        Bypass(cache, cut(reason) or "no reason was logged", times, subject.ranks(members))
        for cache, reason, times, members in groups.head(MOST_BYPASSES).iter_rows()
    )

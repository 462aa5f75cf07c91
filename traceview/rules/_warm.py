"""The second start, on the cache that the first one filled: what it missed, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
import polars as pl

from traceview.rules import _places
from traceview.rules._rows import Row, first_rank
from traceview.rules.finding import Location
from traceview.tables import Tables
from traceview.torchtext.fx import lines, signature, statement

Why = Literal["code", "settings", "folder"]

_MISSED = ("miss", "guard_miss")
_CACHES = ("fx_graph", "aotautograd")


class Miss(msgspec.Struct, frozen=True):
    """A function compiled again: its rows in the second start, and a look-up that missed.

    ``before`` and ``after``: where ``why`` is code, the line that differs in torch's graph.
    """

    compiles: tuple[Row, ...]
    event: Row
    why: Why
    before: str | None = None
    after: str | None = None
    place: Location | None = None


def misses(tables: Tables) -> Iterator[Miss]:
    """Compiles of the second start that missed what the first had kept for the same inputs."""
    first, second = _Start(tables, "cold"), _Start(tables, "warm")
    for key, compiles in second.compiles.items():
        event = next((row for row in second.events.get(key, ()) if row["event"] in _MISSED), None)
        text = second.texts.get(key)
        if event is None or text is None:
            continue
        before = [
            known
            for known, rows in first.compiles.items()
            if _code(rows[0]) == _code(compiles[0])
            and first.kept(known)
            and signature(first.texts.get(known, "")) == signature(text)
        ]
        same = [known for known in before if first.texts[known] == text]
        if same:
            keys = {row["key"] for known in same for row in first.events[known]}
            why: Why = "folder" if event["key"] in keys - {None} else "settings"
            yield Miss(tuple(compiles), event, why)
        elif before:
            old, new, place = _difference(first.texts[before[0]], text)
            if old is not None:  # else only sizes inside differ: other data
                yield Miss(tuple(compiles), event, "code", old, new, place)


def changed_settings(tables: Tables) -> list[str]:
    """``name: value → value`` of what the user's settings were at the first and second start."""
    values: dict[str, dict[str, str]] = {"cold": {}, "warm": {}}
    own = tables["environment"].filter(pl.col("set_by") != "traceview")
    for row in first_rank(own.to_dicts()):
        if row["pass"] in values:
            values[row["pass"]][row["name"]] = row["value"]
    before, after = values["cold"], values["warm"]
    names = [name for name in before | after if before.get(name) != after.get(name)]
    return [f"{name}: {before.get(name)} → {after.get(name)}" for name in sorted(names)]


class _Start:
    """What one pass compiled, by compile key: rows, look-ups and Dynamo's last graph of each."""

    def __init__(self, tables: Tables, name: str) -> None:
        def of(table: str) -> list[Row]:
            return first_rank(tables[table].filter(pl.col("pass") == name).to_dicts())

        self.compiles: dict[str, list[Row]] = {}
        for row in of("compiles"):
            self.compiles.setdefault(row["compile_key"], []).append(row)
        self.events: dict[str, list[Row]] = {}
        for row in of("cache_events"):
            if row["cache"] in _CACHES:
                self.events.setdefault(row["compile_key"], []).append(row)
        graphs = tables["graphs"].filter(
            (pl.col("pass") == name) & (pl.col("kind") == "dynamo_output")
        )
        self.texts: dict[str, str] = dict(graphs.select("compile_key", "text").iter_rows())

    def kept(self, key: str) -> bool:
        """Whether the code of that compile went into Inductor's cache, or was in it."""
        found = [row["event"] for row in self.events.get(key, ()) if row["cache"] == "fx_graph"]
        return bool(found) and set(found) <= {"hit", *_MISSED}


def _code(row: Row) -> tuple[object, ...]:
    return row["co_filename"], row["co_firstlineno"], row["co_name"]


def _difference(before: str, after: str) -> tuple[str | None, str | None, Location | None]:
    """The first operation that differs, in both texts, and the user's line that it came from."""
    for (old, _), (new, place) in zip(lines(before), lines(after), strict=False):
        if statement(old) != statement(new):
            return statement(old), statement(new), _places.if_users(*place) if place else None
    return None, None, None

"""
## What it finds
A second start of the same script that missed the compile cache, though the first one had filled it.

## Why it costs
A cache that is kept between starts, or shipped to other machines, is then useless: every start and
every worker process compiles as if it were the first.

## Evidence
`traceview diagnose --warm` runs the script again on the first run's cache. A finding is a look-up
that missed there for a function that the first run had compiled and kept, with inputs of the same
shapes. torch's graphs of both starts show why: they differ in a constant, or they are the same and
the settings or the cache's folder differ.

A warning where these compiles took at least a quarter of a job whose length is known. Otherwise
information. A graph with other input shapes is not reported.

## What to do
A number that changes from start to start belongs in a tensor (a buffer, an argument): as a Python
number it is part of the code. Keep `TORCHINDUCTOR_CACHE_DIR` where it outlives the process, or save
and load with `torch.compiler.save_cache_artifacts()` and `load_cache_artifacts()`.

## Settings
- `least_seconds`: smaller costs are not reported

## References
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_configuration_tutorial.html
- torch/_inductor/codecache.py, `FxGraphCachePickler`
- https://github.com/pytorch/pytorch/issues/144859
- https://github.com/pytorch/pytorch/issues/152065
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
import polars as pl

from traceview.rules import _starts
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Owners,
    Row,
    Tables,
    about,
    first,
    first_rank,
    from_row,
    if_users,
    plural,
    seconds,
    shorten,
    torch_before,
)
from traceview.torchtext.fx import lines, signature, statement
from traceview.words import names

CODE = "TV605"
NEEDS = frozenset({"cache_events:warm", "compiles:warm", "graphs:warm"})
SEVERITIES = ("warning", "info")

#: Less than half a second is not noticeable.
LEAST_SECONDS = 0.5
_FOLDER = "TORCHINDUCTOR_CACHE_DIR"
_REMEDIES = {
    "code": (
        "Keep what changes from start to start in a tensor: register it as a buffer, or pass it as "
        "an argument. A Python number, a string or the order of a set becomes part of the code."
    ),
    "settings": "Give both starts the same settings and environment variables.",
    "folder": f"Point {_FOLDER} at a folder that outlives the process, the same for all starts.",
}
_SAVED = (
    " Without such a folder, save torch.compiler.save_cache_artifacts() and load it at the start."
)


Why = Literal["code", "settings", "folder"]
_MISSED = ("miss", "guard_miss")
_CACHES = ("fx_graph", "aotautograd")


def check(tables: Tables, *, least_seconds: float = LEAST_SECONDS) -> Iterator[Finding]:
    """One finding a reason and line."""
    groups: dict[tuple[str, Location | None], list[_Miss]] = {}
    for miss in _misses(tables):
        place = _place(tables, miss)
        groups.setdefault((miss.why, place), []).append(miss)
    for (why, place), found in groups.items():
        spent = sum(_starts.backend_seconds(miss.compiles) for miss in found)
        if spent >= least_seconds:
            yield _finding(tables, why, place, found, spent)


def _place(tables: Tables, miss: _Miss) -> Location | None:
    if miss.place:
        return miss.place
    region = first(tables, "regions", is_anchor=True)
    if miss.why == "folder":
        return _starts.setting_place(tables, _FOLDER, region)
    return Owners(tables).code(miss.compiles[0]).place


def _finding(
    tables: Tables, why: str, place: Location | None, found: list[_Miss], spent: float
) -> Finding:
    compiled = [miss.compiles[0] for miss in found]
    event, missed = found[0].event, plural(len(found), "compile")
    called = ", ".join(dict.fromkeys(names.function(row["co_name"]) for row in compiled))
    said = {
        "code": "its code contains a value that differs at each start",
        "settings": "its code was the same, but the settings were not",
        "folder": "the first start's entry was gone",
    }
    return Finding(
        code=CODE,
        rule="ct-cache-miss-warm",
        severity=_starts.severity(tables, spent),
        title=f"{called} missed the compile cache in the second start",
        explanation=(
            f"The first start had compiled and cached it; at the second one {said[why]}. "
            f"{seconds(spent)} of compilation were repeated."
        ),
        cost=Cost(seconds=spent, about="AOTAutograd and Inductor, in the second start"),
        confidence="measured",
        location=place,
        evidence=(
            *_proof(tables, why, found[0]),
            from_row(f"{event['cache']} cache: {missed} missed", "cache_events", event),
        ),
        what_to_do=_remedy(tables, why),
        about=about(*compiled),
    )


def _remedy(tables: Tables, why: str) -> str:
    saved = why == "folder" and not torch_before(tables, (2, 7))
    return _REMEDIES[why] + (_SAVED if saved else "")


def _proof(tables: Tables, why: str, miss: _Miss) -> tuple[Evidence, ...]:
    if why == "code":
        return (
            Evidence(f"first start: {shorten(miss.before)}", "graphs"),
            Evidence(f"second start: {shorten(miss.after)}", "graphs"),
        )
    if why == "settings":
        changed = _changed_settings(tables)
        said = "; ".join(changed) if changed else "no recorded setting differs"
        return (Evidence(f"same graph, another key; {shorten(said)}", "environment"),)
    return (Evidence("same graph, same key, but no entry for it", "cache_events"),)


class _Miss(msgspec.Struct, frozen=True):
    """A function compiled again: its rows in the second start, and a look-up that missed.

    ``before`` and ``after``: where ``why`` is code, the line that differs in torch's graph.
    """

    compiles: tuple[Row, ...]
    event: Row
    why: Why
    before: str | None = None
    after: str | None = None
    place: Location | None = None


def _misses(tables: Tables) -> Iterator[_Miss]:
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
            yield _Miss(tuple(compiles), event, why)
        elif before:
            old, new, place = _difference(first.texts[before[0]], text)
            if old is not None:  # else only sizes inside differ: other data
                yield _Miss(tuple(compiles), event, "code", old, new, place)


def _changed_settings(tables: Tables) -> list[str]:
    """``name: value → value`` of what the user's settings were at the first and second start."""
    values: dict[str, dict[str, str]] = {"cold": {}, "warm": {}}
    own = tables["environment"].filter(pl.col("set_by") != "traceview")
    for row in first_rank(own.to_dicts()):
        if row["pass"] in values:
            values[row["pass"]][row["name"]] = row["value"]
    before, after = values.values()
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
            return statement(old), statement(new), if_users(*place) if place else None
    return None, None, None

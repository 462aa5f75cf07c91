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

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

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
    first_rank,
    from_row,
    if_users,
    plural,
    seconds,
    shorten,
    torch_before,
)
from traceview.tables import grouped
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
_SAID = {
    "code": "its code contains a value that differs at each start",
    "settings": "its code was the same, but the settings were not",
    "folder": "the first start's entry was gone",
}
_SAVED = (
    " Without such a folder, save torch.compiler.save_cache_artifacts() and load it at the start."
)

Why = Literal["code", "settings", "folder"]
_CODE_OBJECT = ("co_filename", "co_firstlineno", "co_name")
_MISSED = ("miss", "guard_miss")
_CACHES = ("fx_graph", "aotautograd")


class _Miss(NamedTuple):
    """A function compiled again: its rows in the second start, a look-up that missed, and why."""

    compiles: Sequence[Row]
    event: Row
    why: Why
    place: Location | None
    proof: tuple[Evidence, ...]


def check(tables: Tables, *, least_seconds: float = LEAST_SECONDS) -> Iterator[Finding]:
    """One finding a reason and line."""
    groups = grouped(_misses(tables), by=lambda miss: (miss.why, miss.place))
    for (why, place), found in groups.items():
        spent = sum(_starts.backend_seconds(miss.compiles) for miss in found)
        if spent < least_seconds:
            continue
        compiled = [miss.compiles[0] for miss in found]
        called = ", ".join(dict.fromkeys(names.function(row["co_name"]) for row in compiled))
        event = found[0].event
        missed = f"{event['cache']} cache: {plural(len(found), 'compile')} missed"
        saved = why == "folder" and not torch_before(tables, (2, 7))
        yield Finding(
            code=CODE,
            rule="ct-cache-miss-warm",
            severity=_starts.severity(tables, spent),
            title=f"{called} missed the compile cache in the second start",
            explanation=(
                f"The first start had compiled and cached it; at the second one {_SAID[why]}. "
                f"{seconds(spent)} of compilation were repeated."
            ),
            cost=Cost(seconds=spent, about="AOTAutograd and Inductor, in the second start"),
            confidence="measured",
            location=place,
            evidence=(*found[0].proof, from_row(missed, "cache_events", event)),
            what_to_do=_REMEDIES[why] + (_SAVED if saved else ""),
            about=about(*compiled),
        )


def _misses(tables: Tables) -> Iterator[_Miss]:
    """Compiles of the second start that missed what the first had kept for the same inputs."""
    first, second = _Start(tables, "cold"), _Start(tables, "warm")
    own = first_rank(tables["environment"].filter(pl.col("set_by") != "traceview").to_dicts())
    old_settings, new_settings = (
        {row["name"]: row["value"] for row in own if row["pass"] == start}
        for start in ("cold", "warm")
    )
    differing = "; ".join(
        f"{name}: {old_settings.get(name)} → {new_settings.get(name)}"
        for name in sorted(old_settings | new_settings)
        if old_settings.get(name) != new_settings.get(name)
    )
    for key, compiles in second.compiles.items():
        event = next((row for row in second.events.get(key, ()) if row["event"] in _MISSED), None)
        text = second.texts.get(key)
        if event is None or text is None:
            continue
        before = [
            known
            for known, rows in first.compiles.items()
            if all(rows[0][part] == compiles[0][part] for part in _CODE_OBJECT)
            and first.kept(known)
            and signature(first.texts.get(known, "")) == signature(text)
        ]
        same = [known for known in before if first.texts[known] == text]
        keys = {row["key"] for known in same for row in first.events[known]} - {None}
        place = Owners(tables).code(compiles[0]).place
        if event["key"] in keys:
            proof = Evidence("same graph, same key, but no entry for it", "cache_events")
            place = _starts.setting_place(tables, _FOLDER)
            yield _Miss(compiles, event, "folder", place, (proof,))
        elif same:
            said = f"same graph, another key; {shorten(differing or 'no recorded setting differs')}"
            yield _Miss(compiles, event, "settings", place, (Evidence(said, "environment"),))
        elif before:
            # The first operation that differs; none where only sizes do: that is other data.
            pairs = zip(lines(first.texts[before[0]]), lines(text), strict=False)
            for (old, _), (new, at) in pairs:
                if statement(old) != statement(new):
                    first_said = f"first start: {shorten(statement(old))}"
                    second_said = f"second start: {shorten(statement(new))}"
                    both = Evidence(first_said, "graphs"), Evidence(second_said, "graphs")
                    line = if_users(*at) if at else None
                    yield _Miss(compiles, event, "code", line or place, both)
                    break


class _Start:
    """What one pass compiled, by compile key: rows, look-ups and Dynamo's last graph of each."""

    def __init__(self, tables: Tables, name: str) -> None:
        mine = pl.col("pass") == name
        compiles = first_rank(tables["compiles"].filter(mine).to_dicts())
        self.compiles = grouped(compiles, "compile_key")
        cached = mine & pl.col("cache").is_in(_CACHES)
        events = first_rank(tables["cache_events"].filter(cached).to_dicts())
        self.events = grouped(events, "compile_key")
        graphs = tables["graphs"].filter(mine, kind="dynamo_output")
        self.texts: dict[str, str] = dict(graphs.select("compile_key", "text").iter_rows())

    def kept(self, key: str) -> bool:
        """Whether the code of that compile went into Inductor's cache, or was in it."""
        found = [row["event"] for row in self.events.get(key, ()) if row["cache"] == "fx_graph"]
        return bool(found) and set(found) <= {"hit", *_MISSED}

"""
## What it finds
A second start of the same script that found nothing for it in the compile cache, though the first
one had filled it.

## Why it costs
A cache that is kept between starts, or shipped to other machines, helps nobody then: every start
and every worker process compiles as if it were the first.

## Evidence
`traceview diagnose --warm` runs the script again on the first run's cache. A finding is a look-up
that missed there for a function that the first run had compiled and kept, with inputs of the same
shapes. torch's graphs of both starts say why: they differ in a constant, or they are the same and
then the settings, or the cache's folder, were not.

A warning where these compiles took a quarter or more of a job whose length is known; else
information. A graph whose input shapes were other ones is no miss to complain of.

## What to do
A number that changes from start to start belongs into a tensor (a buffer, an argument): as a Python
number it is part of the code. Keep `TORCHINDUCTOR_CACHE_DIR` where it outlives the process, or save
and load with `torch.compiler.save_cache_artifacts()` and `load_cache_artifacts()`.

## Settings
- `least_seconds`: cheaper starts are not mentioned

## References
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_configuration_tutorial.html
- torch/_inductor/codecache.py, `FxGraphCachePickler`
- https://github.com/pytorch/pytorch/issues/144859
- https://github.com/pytorch/pytorch/issues/152065
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _settings, _starts, _versions, _warm
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Owners,
    Tables,
    about,
    first,
    from_row,
    plural,
    seconds,
    shorten,
)
from traceview.words import names

CODE = "TV605"
NEEDS = frozenset({"cache_events:warm", "compiles:warm", "graphs:warm"})

#: Below half a second nobody notices.
LEAST_SECONDS = 0.5
_FOLDER = "TORCHINDUCTOR_CACHE_DIR"
_REMEDIES = {
    "code": (
        "Keep what changes from start to start in a tensor: register it as a buffer, or pass it as "
        "an argument. A Python number, string or order of a set is written into the code."
    ),
    "settings": "Give both starts the same settings and environment variables.",
    "folder": f"Point {_FOLDER} at a folder that outlives the process, for all starts the same.",
}
_SAVED = (
    " Where there is none, save torch.compiler.save_cache_artifacts() and load it at the start."
)


def check(tables: Tables, *, least_seconds: float = LEAST_SECONDS) -> Iterator[Finding]:
    """One finding a reason and line."""
    groups: dict[tuple[str, Location | None], list[_warm.Miss]] = {}
    for miss in _warm.misses(tables):
        place = _place(tables, miss)
        groups.setdefault((miss.why, place), []).append(miss)
    for (why, place), found in groups.items():
        spent = sum(_starts.backend_seconds(miss.compiles) for miss in found)
        if spent >= least_seconds:
            yield _finding(tables, why, place, found, spent)


def _place(tables: Tables, miss: _warm.Miss) -> Location | None:
    if miss.place:
        return miss.place
    region = first(tables, "regions", is_anchor=True)
    if miss.why == "folder":
        return _settings.place(tables, _FOLDER, region)
    return Owners(tables).code(miss.compiles[0]).place


def _finding(
    tables: Tables, why: str, place: Location | None, found: list[_warm.Miss], spent: float
) -> Finding:
    compiled = [miss.compiles[0] for miss in found]
    names = ", ".join(dict.fromkeys(names.function(row["co_name"]) for row in compiled))
    said = {
        "code": "its code holds a value that is another one at each start",
        "settings": "its code was the same, its settings were not",
        "folder": "what the first start had kept was not there",
    }
    return Finding(
        code=CODE,
        rule="ct-cache-miss-warm",
        severity=_starts.severity(tables, spent),
        title=f"The compile cache does not help a second start: {names} missed it",
        explanation=(
            f"The first start had compiled it and kept it; at the second one {said[why]}. So "
            f"{seconds(spent)} of compiling were done again."
        ),
        cost=Cost(seconds=spent, about="AOTAutograd and Inductor, in the second start"),
        confidence="measured",
        location=place,
        evidence=(*_proof(tables, why, found[0]), _looked_up(found)),
        what_to_do=_remedy(tables, why),
        about=about(*compiled),
    )


def _remedy(tables: Tables, why: str) -> str:
    saved = why == "folder" and not _versions.before(tables, (2, 7))
    return _REMEDIES[why] + (_SAVED if saved else "")


def _proof(tables: Tables, why: str, miss: _warm.Miss) -> tuple[Evidence, ...]:
    if why == "code":
        return (
            Evidence(f"first start: {shorten(miss.before)}", "graphs"),
            Evidence(f"second start: {shorten(miss.after)}", "graphs"),
        )
    if why == "settings":
        changed = _warm.changed_settings(tables)
        said = "; ".join(changed) if changed else "no setting that is recorded differs"
        return (Evidence(f"same graph, another key; {shorten(said)}", "environment"),)
    return (Evidence("same graph, same key, and no entry under it", "cache_events"),)


def _looked_up(found: list[_warm.Miss]) -> Evidence:
    event = found[0].event
    missed = plural(len(found), "compile")
    return from_row(f"{event['cache']} cache: {missed} missed", "cache_events", event)

"""
## What it finds
torch's own caches of compiled code, switched off.

## Why it costs
With them a second start traces the code and then loads what the first one compiled. Without them
every start, and every worker process, compiles everything again.

## Evidence
torch says at a compile that the FX graph cache is disabled, and a setting that the user gave says
why: `force_disable_caches`, `fx_graph_cache`, or the environment variable of one of them. The cost
is what these compiles took in AOTAutograd and Inductor, which a warm cache would save.

A warning where that is a quarter or more of a job whose length is known; else information.

## What to do
Take the setting out. To time a cold compile, point `TORCHINDUCTOR_CACHE_DIR` at an empty folder
instead: that leaves nothing switched off for later.

## Settings
- `least_seconds`: cheaper starts are not mentioned

## References
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_configuration_tutorial.html
- torch/compiler/config.py, `force_disable_caches`
- torch/_inductor/config.py, `fx_graph_cache`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _settings, _starts
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Row,
    Snippet,
    Tables,
    first,
    from_row,
    plural,
    rows,
    seconds,
)

CODE = "TV603"
NEEDS = frozenset({"cache_events", "compiles", "environment"})

#: Below half a second nobody notices.
LEAST_SECONDS = 0.5
#: Setting → the value that switches the caches off. ``1`` is all that torch takes for yes.
_SWITCHES = {
    "force_disable_caches": "True",
    "fx_graph_cache": "False",
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
    "TORCH_COMPILE_FORCE_DISABLE_CACHES": "1",
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
}


def check(tables: Tables, *, least_seconds: float = LEAST_SECONDS) -> Iterator[Finding]:
    """At most one finding: the process as a whole."""
    off = rows(tables, "cache_events", cache="fx_graph", event="disabled")
    keys = {row["compile_key"] for row in off} - _kept_elsewhere(tables)
    switch = next((row for row in rows(tables, "environment") if _switches_off(row)), None)
    named = switch or _settings.option(tables, _SWITCHES)
    spent = _starts.backend_seconds(_starts.of_keys(tables, keys))
    if not keys or named is None or spent < least_seconds:
        return
    region = first(tables, "regions", is_anchor=True)
    yield Finding(
        code=CODE,
        rule="ct-cache-disabled",
        severity=_starts.severity(tables, spent),
        title=f"torch's compile caches are switched off (`{named['name']}`)",
        explanation=(
            f"Every start compiles everything again. Of this one's compiling, {seconds(spent)} "
            "were work whose result a cache would have kept for the next start."
        ),
        cost=Cost(seconds=spent, about="AOTAutograd and Inductor, at every start"),
        confidence="derived",
        location=_settings.place(tables, named["name"], region),
        evidence=(
            Evidence(
                f"{named['name']} is {named['value']}", "environment" if switch else "regions"
            ),
            from_row(
                f"the FX graph cache was disabled for {plural(len(keys), 'compile')}",
                "cache_events",
                off[0],
            ),
        ),
        what_to_do=(
            f"Take `{named['name']}` out. To time a cold compile, point TORCHINDUCTOR_CACHE_DIR at "
            "an empty folder for that one run."
        ),
        snippet=Snippet("shell", "TORCHINDUCTOR_CACHE_DIR=$(mktemp -d) python SCRIPT"),
    )


def _switches_off(row: Row) -> bool:
    return row["set_by"] != "traceview" and bool(_SWITCHES.get(row["name"]) == row["value"])


def _kept_elsewhere(tables: Tables) -> set[str]:
    """Compiles whose code AOTAutograd's cache keeps whole (``bundled_autograd_cache``)."""
    found = rows(tables, "cache_events", cache="aotautograd")
    return {row["compile_key"] for row in found if row["event"] in ("hit", "miss")}

"""
## What it finds
torch's own caches of compiled code, switched off.

## Why it costs
With them a second start traces the code and then loads what the first one compiled. Without them
every start and every worker process compiles everything again.

## Evidence
torch logs at a compile that the FX graph cache is disabled, and one of the user's settings explains
it: `force_disable_caches`, `fx_graph_cache`, or the environment variable of one of them. The cost
is what these compiles took in AOTAutograd and Inductor, which a warm cache would save.

A warning where that is at least a quarter of a job whose length is known. Otherwise information.

## What to do
Remove the setting. To time a cold compile, point `TORCHINDUCTOR_CACHE_DIR` at an empty folder
instead: then nothing stays switched off.

## Settings
- `least_seconds`: smaller costs are not reported

## References
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_configuration_tutorial.html
- torch/compiler/config.py, `force_disable_caches`
- torch/_inductor/config.py, `fx_graph_cache`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _starts
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Snippet,
    Tables,
    first_rank,
    from_row,
    plural,
    rows,
    seconds,
)

CODE = "TV603"
NEEDS = frozenset({"cache_events", "compiles", "environment"})
SEVERITIES = ("warning", "info")

#: Less than half a second is not noticeable.
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
    # AOTAutograd's cache keeps their code whole (``bundled_autograd_cache``).
    kept = {
        row["compile_key"]
        for row in rows(tables, "cache_events", cache="aotautograd")
        if row["event"] in ("hit", "miss")
    }
    keys = {row["compile_key"] for row in off} - kept
    switches = [
        (row["name"], row["value"], "environment")
        for row in rows(tables, "environment")
        if row["set_by"] != "traceview" and _SWITCHES.get(row["name"]) == row["value"]
    ] + [
        (name, str(value), "regions")
        for region in first_rank(rows(tables, "regions"))
        for name, value in _starts.options(region).items()
        if _SWITCHES.get(name) == str(value)
    ]
    spent = _starts.backend_seconds(_starts.of_keys(tables, keys))
    if not keys or not switches or spent < least_seconds:
        return
    name, value, table = switches[0]
    disabled = f"the FX graph cache was disabled for {plural(len(keys), 'compile')}"
    yield Finding(
        code=CODE,
        rule="ct-cache-disabled",
        severity=_starts.severity(tables, spent),
        title=f"torch's compile caches are switched off (`{name}`)",
        explanation=(
            f"Every start compiles everything again. A cache would have kept the result of "
            f"{seconds(spent)} of this start's compilation."
        ),
        cost=Cost(seconds=spent, about="AOTAutograd and Inductor, at every start"),
        confidence="derived",
        location=_starts.setting_place(tables, name),
        evidence=(
            Evidence(f"{name} is {value}", table),
            from_row(disabled, "cache_events", off[0]),
        ),
        what_to_do=(
            f"Remove `{name}`. To time a cold compile, point TORCHINDUCTOR_CACHE_DIR at "
            "an empty folder for that one run."
        ),
        snippet=Snippet("shell", "TORCHINDUCTOR_CACHE_DIR=$(mktemp -d) python SCRIPT"),
    )

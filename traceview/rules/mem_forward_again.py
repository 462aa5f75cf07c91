"""
## What it finds
A compiled backward that computes much of the forward again, since a setting asks for less memory.

## Why it costs
The backward has to compute once more what the forward does not save. With
`activation_memory_budget` below 1, AOTAutograd's partitioner drops results of matrix products and
convolutions as well: at 0 it saves the graph's inputs alone, and a training step pays for the
forward twice.

## Evidence
Operations of the backward graph that are nodes of the forward graph under the same name, the
profiled time of the kernels that do nothing else, and the setting's recorded value. A warning where
compiling hurts, else information: the saved memory may be worth it.

## What to do
Leave the setting at its default, or raise it until the memory just suffices. Where only some layers
need much memory, put these alone into `torch.utils.checkpoint`.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that computing again must take.

## References
- https://docs.pytorch.org/docs/stable/checkpoint.html
- torch/_functorch/config.py, `activation_memory_budget`
- torch/_functorch/partitioners.py, `choose_saved_values_set`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._starts import setting_place
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Cost,
    Evidence,
    Finding,
    Location,
    Snippet,
    Tables,
    first_rank,
    milliseconds,
    outcome,
    percent,
    rows,
    short,
    step_ms,
)

CODE = "TV428"
NEEDS = frozenset({"waterfall_rows", "environment"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"recompute"})

#: Less of a step is what the default partitioner computes again as well, to read less memory.
LEAST_SHARE = 0.05
#: Settings of torch._functorch.config that have the partitioner save less.
_SETTINGS = ("activation_memory_budget", "aggressive_recomputation")


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all that is computed again, at the line of the setting."""
    section = first_rank(rows(tables, "environment", section="functorch_config"))
    settings = [row for row in section if row["name"] in _SETTINGS]
    again = first_rank(rows(tables, "waterfall_rows", effect="recompute"))
    again = sorted((row for row in again if row["ms"]), key=lambda row: -row["ms"])
    step, ms = step_ms(tables, "compiled"), sum(row["ms"] for row in again)
    if not settings or not step or ms < least_share * step:
        return
    name, value, default = (settings[0][key] for key in ("name", "value", "default"))
    known = (row for row in again if row["file"] is not None and row["line"] is not None)
    lines = tuple(dict.fromkeys(Location(row["file"], row["line"]) for row in known))
    where = f", most of it {short(lines[0])}" if lines else ""
    yield Finding(
        code=CODE,
        rule="mem-forward-again",
        severity="warning" if outcome(tables) == "hurt" else "info",
        title=(
            f"{name} = {value} has the backward compute the forward again: {milliseconds(ms)} a "
            f"step ({percent(ms / step)}){where}"
        ),
        explanation=(
            "The compiled forward saves less than eager does, and the backward computes the rest a "
            "second time."
        ),
        cost=Cost(ms, None, "kernels of the backward that only compute the forward again"),
        confidence="derived",
        location=setting_place(tables, name),
        evidence=(
            Evidence(f"torch._functorch.config.{name}: {value}", "environment"),
            *(
                Evidence(f"{row['what']}: {milliseconds(row['ms'])} of a step", "waterfall_rows")
                for row in again[:MOST_EVIDENCE]
            ),
        ),
        what_to_do=(
            "Leave the setting at its default if the memory suffices, or put only the layers that "
            "need much memory into torch.utils.checkpoint."
        ),
        snippet=Snippet("python", f"torch._functorch.config.{name} = {default}"),
        remedy=(f"torch._functorch.config.{name}={default}",),
        also_at=lines[:3],
    )

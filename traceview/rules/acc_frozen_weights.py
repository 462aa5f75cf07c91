"""
## What it finds
Weights that change after Inductor has compiled them in as constants (freezing), while the compiled
code is used on.

## Why it costs
With `torch._inductor.config.freezing = True` and gradients off, parameters and buffers are folded
into compiled code. Nothing guards their values: after an optimizer's step, a `load_state_dict()` or
any other change in place, eager uses the new weights and compiled code the old ones, without a
message. Results are wrong.

## Evidence
The collector notes which tensors Inductor freezes, and compares their values where their version or
address has changed. Calls with gradients off came after a change, and nothing of that callable was
compiled after it. A change that leaves the values as they were, or that no call follows, is not
reported.

## What to do
Leave freezing off for a model whose weights change, or call `torch.compiler.reset()` after each
change, which compiles everything again.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.reset.html
- torch/_inductor/config.py, `freezing`
- torch/_inductor/freezing.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._accuracy import RESULT, compiles_of
from traceview.rules._starts import setting_line
from traceview.rules.kit import (
    Evidence,
    Finding,
    Snippet,
    Tables,
    compile_call,
    first_rank,
    line_of,
    plural,
    rows,
    short,
)
from traceview.tables import grouped

CODE = "TV706"
TABLE = "frozen_weights"
NEEDS = frozenset({TABLE})
SEVERITIES = ("error",)
EXPLAINS = frozenset({"less_work"})


def check(tables: Tables) -> Iterator[Finding]:
    """One finding for each compiled callable."""
    stale, resets = [], rows(tables, "resets")
    for row in first_rank(rows(tables, "frozen_weights")):
        if row["stale_calls"] and (changed_us := row["last_changed_us"]) is not None:
            # Calls came after a change that no compiled code of the region has seen.
            later = (*compiles_of(tables, row["region_id"]), *resets)
            if not any((each["started_us"] or 0.0) > changed_us for each in later):
                stale.append(row)
    regions = {row["region_id"]: row for row in first_rank(rows(tables, "regions"))}
    setting = setting_line(tables, "freezing", "TORCHINDUCTOR_FREEZING")
    for region_id, found in grouped(stale, "region_id").items():
        row = max(found, key=lambda each: each["changed"])
        region = regions.get(region_id)
        made, name = compile_call(region), region["name"] if region else "a compiled callable"
        changes = line_of(row)
        places = [place for place in (changes, setting, made) if place]
        calls = plural(row["stale_calls"], "compiled call")
        weights = f"{row['changed']} of {row['weights']} frozen weights"
        named = f": {', '.join(row['names'])}" if row["names"] else ""
        more = ", …" if row["names"] and row["changed"] > len(row["names"]) else ""
        at = f" ({short(changes)})" if changes else ""
        yield Finding(
            code=CODE,
            rule="acc-frozen-weights",
            severity="error",
            title=f"Compiled {name} uses its old weights after they changed{at}",
            explanation=(
                f"Freezing is on, so the weights of {name} are constants of its compiled code. "
                "They were changed after it was compiled; nothing guards that, and later calls "
                "use the old ones. Eager uses the new ones."
            ),
            cost=RESULT,
            confidence="measured",
            location=places[0] if places else None,
            also_at=tuple(places[1:]),
            evidence=(
                Evidence(f"other values by step {row['step']}: {weights}{named}{more}", TABLE),
                Evidence(f"at least {calls} after that, with gradients off", TABLE),
                Evidence(f"{name} was not compiled after the last change", "compile_regions"),
            ),
            what_to_do=(
                "Leave freezing off where weights change; or call torch.compiler.reset() after "
                "each change."
            ),
            snippet=Snippet("python", "torch._inductor.config.freezing = False"),
            remedy=("torch._inductor.config.freezing=False",),
        )

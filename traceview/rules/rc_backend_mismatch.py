"""
## What it finds
`torch.compile` called again and again on one function, each time with another backend object: a
function, `functools.partial` or object that is made for the call.

## Why it costs
Compiled code belongs to the backend that made it, and backends are compared as objects. A new one
shares nothing with the last one: a whole compile follows each torch.compile call, up to the
recompile limit. After that the function runs in eager.

## Evidence
At least two recompiles of one function with "BACKEND_MATCH failure", in which the cached and the
new backend have the same description, only another id. Where the descriptions differ (another
backend, mode or `dynamic=`, as in a benchmark of modes), it is intended and not reported.

A warning where the recompiles took at least a second, and at least 5 % of the job where its length
is known, or where the function hit the recompile limit. Otherwise information.

## What to do
Make the backend once, at the top of a module, and call torch.compile once, before the loop.
Backends given by name ("inductor") and equal `mode=` and `options=` are equal to each other.

## Settings
- `fewest_recompiles`: fewer recompiles of one function are not reported.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- https://docs.pytorch.org/docs/stable/torch.compiler_custom_backends.html
- torch/_dynamo/guards.py, `get_guard_fail_reason_helper`
- https://github.com/pytorch/pytorch/issues/168373
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from traceview.rules import _recompiles
from traceview.rules._recompiles import FEWEST_RECOMPILES, Cause
from traceview.rules.kit import (
    Finding,
    Spot,
    Tables,
    compile_call,
    from_row,
    short,
    shorten,
    times,
)

CODE = "TV213"
NEEDS = frozenset({"recompile_causes"})
SEVERITIES = ("warning", "info")

#: What differs between two objects of one make.
_ADDRESS = re.compile(r"\b0x[0-9a-f]+")
_COMPILER = re.compile(r"compiler='([^']+)'")
_PLAIN = re.compile(r"^[\w.<> ]+")
#: Inductor's wrapper says nothing of its options, and equal ones are equal: it is no accident.
_INDUCTOR = "_TorchCompileInductorWrapper"


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a function."""
    for found in _recompiles.causes(tables, "backend"):
        same = []
        for row in found.rows:  # backends of one make, as far as it is known
            old, new = row["old"] or "", row["new"] or ""
            differ = _ADDRESS.sub("", old) != _ADDRESS.sub("", new)
            if not (differ or _INDUCTOR in old or _INDUCTOR in new):
                same.append(row)
        # The line that called torch.compile on the function most often, and how often it did.
        regions = _recompiles.own_regions(tables, found)
        made: Counter[tuple[str | None, int | None]] = Counter()
        for row in regions:
            made[row["call_file"], row["call_line"]] += row["compile_calls"] or 1
        line, calls = made.most_common(1)[0] if made else (None, 0)
        region = next((r for r in regions if (r["call_file"], r["call_line"]) == line), None)
        # Older torch does not describe backends.
        described = bool(same) and same[0]["old"] is not None
        is_callable = region is not None and bool(region["backend_is_callable"])
        if not same or not (described or (is_callable and calls > FEWEST_RECOMPILES)):
            continue
        cause = Cause(tuple(same))
        if cause.recompiles < fewest_recompiles:
            continue
        said = cause.row["old"] or ""
        named = _COMPILER.search(said) or _PLAIN.search(said)
        name = named[named.lastindex or 0].strip() if named else ""
        name = shorten(_ADDRESS.sub("…", name)) or "a callable"
        at, evidence = None, cause.evidence()
        if region is not None:
            at = Spot(compile_call(region))
            text = f"torch.compile at {short(at.place)} was called {times(calls)}"
            evidence = (from_row(text, "regions", region), *evidence)
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-backend-mismatch",
            title=f"every torch.compile call gets a new backend object ({name})",
            explanation=(
                "Compiled code is kept for the backend object that made it. Here each "
                "torch.compile call gets a new one, so compiled code is never found again."
            ),
            at=at,
            evidence=evidence,
            what_to_do=(
                f"Make the backend {name} once, outside the function that calls torch.compile, "
                "and call torch.compile once, before the loop."
            ),
        )

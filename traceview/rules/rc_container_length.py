"""
## What it finds
A list, tuple, dict or set that compiled code reads and whose length or keys change from call to
call: a cache that grows by one entry a token, a history that is appended to.

## Why it costs
The length and the keys of Python containers are compiled in as constants; torch never makes a
length symbolic. Every new one costs a whole compile, up to the recompile limit. After that, calls
with new lengths run in eager.

## Evidence
At least two recompiles of one function whose deciding guard is on the length or the keys of the
same source (`len(cache) == 3`, `not cache`, `list(dict.keys(…))`), or on what a set holds. A single
one, such as between an empty cache and a full one, makes two variants, once.

A warning where the recompiles took at least a second, and at least 5 % of the job where its length
is known, or where the function hit the recompile limit. Otherwise information.

## What to do
Give the compiled function what does not grow: one tensor of the greatest size that is written at a
position, or a tuple of fixed length. Append to logs and histories outside it.

## Settings
- `fewest_recompiles`: fewer recompiles of one function are not reported.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/guards.py, `GuardBuilder.SEQUENCE_LENGTH` and `DICT_KEYS_MATCH`
- https://github.com/huggingface/transformers/issues/40328
- https://github.com/huggingface/transformers/issues/30351
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from traceview.derive.facts.recompile_causes import is_of_members
from traceview.rules import _recompiles
from traceview.rules._recompiles import FEWEST_RECOMPILES, Cause
from traceview.rules.kit import Finding, Tables

CODE = "TV207"
NEEDS = frozenset({"recompile_causes"})
SEVERITIES = ("warning", "info")

_LENGTH, _KEYS, _MEMBERS = "the length", "the keys", "the members"
_ADDS = re.compile(r"\.(?:append|appendleft|extend|insert|add|update|setdefault)\(")


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a function and container."""
    for cause in _recompiles.causes(tables, "length", fewest_recompiles):
        named = (row for row in cause.rows if row["kind"] in ("keys", "value"))
        what = _KEYS if cause.row["kind"] == "keys" else _LENGTH
        if any(is_of_members(row["guard"] or "") for row in named):
            what = _MEMBERS

        met = (row["old"] for row in cause.rows if row["kind"] == "length")
        lengths = [int(value) for value in met if value and value.isdecimal()]
        grows = len(lengths) > 1 and all(a < b for a, b in pairwise(lengths))
        verb = "grows" if grows else "changes" if what == _LENGTH else "change"
        remedy, paste = _remedy(cause, what)
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-container-length",
            title=f"{what} of {cause.source} {verb}",
            explanation=(
                f"torch compiles {what} of {cause.source} in as a constant and guards it"
                + (f" (met: {cause.values()})." if cause.values() else ".")
                + " It never becomes symbolic, so every new one costs a whole compile."
            ),
            at=_recompiles.reading(tables, cause),
            evidence=_recompiles.evidence(tables, cause),
            what_to_do=remedy,
            paste=paste,
        )


def _remedy(cause: Cause, what: str) -> tuple[str, str | None]:
    """(what to do, what to paste)."""
    # What torch guards of a module that is no data of the user's: hooks and sub-modules.
    if cause.source.endswith("_hooks"):
        hooks = "Register hooks once, before the first call, and remove those no longer needed."
        return hooks, None
    if cause.source.endswith("._modules"):
        return "Build the module completely before the first call.", None
    if what == _MEMBERS:
        return (
            f"Keep {cause.source} outside the compiled function, and pass what it decides as "
            "tensors to calculate with: 1.0 for what is in it and 0.0 for what is not."
        ), None
    if what == _KEYS:
        return (
            f"Give {cause.source} the same keys on each call (a key that is not used may hold "
            "None), or take what is needed out of it before the call."
        ), None
    tensor = (
        f"{cause.source} by one tensor of the greatest length that is needed, allocated "
        "once, and write each new entry at a position that is itself a tensor (memory: all of it "
        "is held from the start)."
    )
    # The line that was guarded adds to the container: compiled code fills it itself.
    if any(_ADDS.search(row["user_code"] or "") for row in cause.rows):
        return (
            f"Return what is added to {cause.source}, and add it outside the compiled function. "
            f"Where the entries are read inside, too, replace {tensor}"
        ), None
    name = cause.source.rpartition(".")[2]
    name = name if name.isidentifier() else "cache"
    return (
        f"Replace {tensor}",
        f"{name} = new.new_zeros(MOST, *new.shape)  # once\n"
        f"{name}.index_copy_(0, position, new.unsqueeze(0))  # position: an int64 tensor of 1",
    )

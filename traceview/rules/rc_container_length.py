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
from traceview.rules.kit import Finding, Snippet, Tables, times

CODE = "TV207"
NEEDS = frozenset({"recompile_causes"})
SEVERITIES = ("warning", "info")

#: What torch guards of a module that is no data of the user's: hooks and sub-modules.
_HOOKS = "_hooks"
_MODULES = "._modules"
_MEMBERS = "the members"
_ADDS = re.compile(r"\.(?:append|appendleft|extend|insert|add|update|setdefault)\(")


def check(tables: Tables, *, fewest_recompiles: float = FEWEST_RECOMPILES) -> Iterator[Finding]:
    """One finding a function and container."""
    for cause in _recompiles.causes(tables, "length"):
        count = cause.recompiles
        if count < fewest_recompiles:
            continue
        at, cost = _recompiles.reading(tables, cause), cause.cost(tables)
        what = _what(cause)

        met = (row["old"] for row in cause.rows if row["kind"] == "length")
        lengths = [int(value) for value in met if value and value.isdecimal()]
        grows = len(lengths) > 1 and all(a < b for a, b in pairwise(lengths))
        verb = "grows" if grows else "changes" if what == "the length" else "change"
        yield Finding(
            code=CODE,
            rule="rc-container-length",
            severity=_recompiles.severity(tables, cause, cost),
            title=(
                f"{_recompiles.opening(cause.function)} recompiled {times(count)}: {what} of "
                f"{cause.source} {verb}"
            ),
            explanation=(
                f"torch compiles {what} of {cause.source} in as a constant and guards it"
                + (f" (met: {cause.values()})." if cause.values() else ".")
                + " It never becomes symbolic, so every new one costs a whole compile."
            ),
            cost=cost,
            confidence="measured",
            location=at.place,
            inside=at.inside,
            about=cause.about,
            evidence=_recompiles.evidence(tables, cause),
            what_to_do=_remedy(cause),
            snippet=_snippet(cause),
        )


def _what(cause: Cause) -> str:
    named = (row for row in cause.rows if row["kind"] in ("keys", "value"))
    if any(is_of_members(row["guard"] or "") for row in named):
        return _MEMBERS
    return "the keys" if cause.row["kind"] == "keys" else "the length"


def _remedy(cause: Cause) -> str:
    if cause.source.endswith(_HOOKS):
        return "Register hooks once, before the first call, and remove those no longer needed."
    if cause.source.endswith(_MODULES):
        return "Build the module completely before the first call."
    if _what(cause) == _MEMBERS:
        return (
            f"Keep {cause.source} outside the compiled function, and pass what it decides as "
            "tensors to calculate with: 1.0 for what is in it and 0.0 for what is not."
        )
    if cause.row["kind"] == "keys":
        return (
            f"Give {cause.source} the same keys on each call (a key that is not used may hold "
            "None), or take what is needed out of it before the call."
        )
    tensor = (
        f"replace {cause.source} by one tensor of the greatest length that is needed, allocated "
        "once, and write each new entry at a position that is itself a tensor (memory: all of it "
        "is held from the start)."
    )
    if not _is_appended_to(cause):
        return tensor[:1].upper() + tensor[1:]
    return (
        f"Return what is added to {cause.source}, and add it outside the compiled function. "
        f"Where the entries are read inside, too, {tensor}"
    )


def _is_appended_to(cause: Cause) -> bool:
    """Whether the line that was guarded adds to the container: compiled code fills it itself."""
    return any(_ADDS.search(row["user_code"] or "") for row in cause.rows)


def _snippet(cause: Cause) -> Snippet | None:
    other = _what(cause) != "the length" or _is_appended_to(cause)
    if other or cause.source.endswith((_HOOKS, _MODULES)):
        return None
    name = cause.source.rpartition(".")[2]
    name = name if name.isidentifier() else "cache"
    return Snippet(
        "python",
        f"{name} = new.new_zeros(MOST, *new.shape)  # once\n"
        f"{name}.index_copy_(0, position, new.unsqueeze(0))  # position: an int64 tensor of 1",
    )

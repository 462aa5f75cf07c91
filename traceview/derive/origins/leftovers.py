"""Partners for work of a region that shares no line with the other stance's.

A line may be a library's in eager and the caller's in a graph, an optimizer's step may be one line
in eager and another in its generated code, a fused kernel may name only some of its lines. What is
left of one stance then belongs to that set of the other stance's work, in the same region, which
holds the operators of most of its kernels, if it holds those of half of them. What has a partner
already is no other's, but for what runs inside one of its operators: a product that eager computes
twice stays unmatched once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from traceview.derive.origins.groups import Key, components, operators_of
from traceview.torchtext.fx import operator_word

Row = dict[str, Any]
_OTHER = {"eager": "compiled", "compiled": "eager"}
_ENOUGH = 0.5


class _Words(NamedTuple):
    """Operators that a kernel computes, and those that stand around it."""

    own: set[str]
    around: set[str]


class _Set(msgspec.Struct):
    """Rows that belong together: their numbers, each one's operators by stance, where they ran."""

    rows: list[int] = []
    words: dict[str, list[_Words]] = msgspec.field(
        default_factory=lambda: {"eager": [], "compiled": []}
    )
    places: set[tuple[str, bool]] = set()


def with_leftovers(rows: Sequence[Row], keyed: Sequence[list[Key]]) -> list[list[Key]]:
    """``keyed`` with a key more for each set of one stance that has found its partner.

    The rows of such a set say in ``how`` that operators joined them.
    """
    sets: dict[int, _Set] = {}
    for number, root in enumerate(components(keyed)):
        _add(sets.setdefault(root, _Set()), number, rows[number])
    given = [list(mine) for mine in keyed]
    for root, left in sets.items():
        partner = _partner(left, sets.values())
        if partner is None:
            continue
        for number in left.rows:
            rows[number]["how"] = "operator"
        for number in (*left.rows, *partner.rows):
            given[number].append(("leftover", str(root)))
    return given


def _add(found: _Set, number: int, row: Row) -> None:
    found.rows.append(number)
    every = operators_of(row)
    own = every & {operator_word(op) for op in row["ops"]}
    found.words[row["stance"]].append(_Words(own, every - own))
    if row["region"] is not None:
        found.places.add((row["region"], bool(row["is_backward"])))


def _partner(left: _Set, sets: Iterable[_Set]) -> _Set | None:
    """The set whose other stance computes most of what ``left`` computes; None if none does."""
    alone = [stance for stance, other in _OTHER.items() if not left.words[other]]
    if not alone:
        return None
    mine, other = left.words[alone[0]], _OTHER[alone[0]]

    def shared(candidate: _Set) -> tuple[int, bool]:
        matched = bool(candidate.words[alone[0]])
        if not left.places & candidate.places:
            return 0, matched
        theirs = {word for words in candidate.words[other] for word in words.own}
        free = set() if matched else theirs
        return sum(bool(words.around & theirs or words.own & free) for words in mine), matched

    best = max(sets, key=shared, default=None)
    enough = best is not None and shared(best)[0] >= max(1, _ENOUGH * len(mine))
    return best if enough else None

"""Eager kernels and the compiled ones that replaced them: the smallest sets that belong together.

Every kernel has keys: a user's line, the kind of work there (each library's apart, custom operators
and the user's own Triton too, all else that is bound by memory together), forward or backward. A
generated kernel has a key for each line and kind in it. Kernels that share a key belong together,
and with whatever those share one with. A line's keys are split by shape or operator where that
leaves no kernel without a partner.

Some work shares no line with the other stance's: a line may be a library's in eager and the
caller's in a graph, an optimizer's step may be one line in eager and another in its generated code,
a fused kernel may name only some of its lines. What is left of one stance then belongs to that set
of the other stance's work, in the same region, which holds the operators of most of its kernels, if
it holds those of half of them. What has a partner already is no other's, but for what runs inside
one of its operators: a product that eager computes twice stays unmatched once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from traceview.derive.origins.work import LIBRARY
from traceview.parse.kineto.categories import USER_KERNEL, operator_category
from traceview.torchtext.fx import VIEWS, operator_word

Row = dict[str, Any]
Key = tuple[str | None, ...]
#: Joins from the firmest to the weakest.
HOW = ("line", "forward", "provenance", "comment", "operator", "name", "order")
_OTHER = {"eager": "compiled", "compiled": "eager"}
#: Operators that stand inside too many others to say which.
_ANYWHERE = {"copy", "fill", "zero"}
#: Operators that only arrange: those that a kernel computes besides its own.
_ARRANGING = {operator_word(op) for op in VIEWS} | {"contiguous", "to", "linear", "matmul"}


def keys(row: Row, lost: Container[Key] = ()) -> list[Key]:
    """Keys of one aggregated execution; none for what a graph's call does outside its code.

    Without a line it has its operators' names. ``lost`` are those keys of the other stance: whoever
    holds such an operator has its name as a key too.
    """
    in_graph = row["graph_key"] is not None
    if in_graph and row["how"] is None:
        return []
    way, kinds, inside = _way(row), [row["kind"]], bool(row["region"] or in_graph)
    if in_graph and row["category"].startswith("generated_"):
        # One that names a library's operator holds a part of what that does in eager: a bias, a
        # whole small product.
        library = {operator_category(op.replace(".", "::", 1)) for op in row["ops"]} & {*LIBRARY}
        if row["category"] == "generated_template" and not library:
            library = {"attention" if "attention" in row["name"] else "gemm"}
        kinds = ["memory", *sorted(kind for kind in library if kind)]
    words = {operator_word(op) for op in row["ops"]} - _ANYWHERE
    if row["category"] == USER_KERNEL:  # it has one name in both stances
        words = {operator_word(row["plain"])}
    if not in_graph:  # outside regions only the outermost operator
        words = {row["word"], *(words if inside else ())}
    where = (way, "inside" if inside else "outside")
    named: list[Key] = [("word", word, kind, *where) for kind in kinds for word in sorted(words)]
    if not in_graph and not row["lines"]:
        return named
    found: list[Key] = [("line", line, kind, way) for line in row["lines"] for kind in kinds]
    return found + [key for key in named if key in lost]


def _way(row: Row) -> str:
    return "backward" if row["is_backward"] else "forward"


def lost_keys(rows: Iterable[Row]) -> dict[str, set[Key]]:
    """Stance → keys of the other stance's operators without a line."""
    found: dict[str, set[Key]] = {"eager": set(), "compiled": set()}
    for row in rows:
        if row["graph_key"] is None and not row["lines"]:
            found[_OTHER[row["stance"]]].update(keys(row))
    return found


def by_shape(rows: Sequence[Row], keyed: Sequence[list[Key]]) -> list[list[Key]]:
    """``keyed`` with a library's keys split by shape, where both stances have the same."""
    shapes: dict[Key, dict[str, set[str | None]]] = {}
    for row, mine in zip(rows, keyed, strict=True):
        for key in mine:
            if key[2] in LIBRARY:
                shapes.setdefault(key, {}).setdefault(row["stance"], set()).add(row["shape"])
    alike = {
        key
        for key, sides in shapes.items()
        if sides.get("eager") == sides.get("compiled") and None not in sides["eager"]
    }
    return [
        [(*key, row["shape"]) if key in alike else key for key in mine]
        for row, mine in zip(rows, keyed, strict=True)
    ]


def by_operator(rows: Sequence[Row], keyed: Sequence[list[Key]]) -> list[list[Key]]:
    """``keyed`` with the memory-bound work of a line split by operator.

    A line is left whole where any kernel of it would be without a partner.
    """
    spelt = [operators_of(row) for row in rows]
    sides: dict[Key, dict[str, list[set[str]]]] = {}
    for row, mine, words in zip(rows, keyed, spelt, strict=True):
        for key in mine:
            if key[0] == "line" and key[2] == "memory":
                sides.setdefault(key, {}).setdefault(row["stance"], []).append(words)
    shared: dict[Key, set[str]] = {}
    for key, found in sides.items():
        eager, compiled = found.get("eager", []), found.get("compiled", [])
        both = {word for words in eager for word in words}
        both &= {word for words in compiled for word in words}
        if all(words & both for words in (*eager, *compiled)):
            shared[key] = both
    return [
        [
            split
            for key in mine
            for split in [(*key, word) for word in sorted(words & shared.get(key, set()))] or [key]
        ]
        for mine, words in zip(keyed, spelt, strict=True)
    ]


def operators_of(row: Row) -> set[str]:
    """Words of the operators that a kernel computes, or that stand around it in eager."""
    words = {operator_word(op) for op in row["ops"]}
    if row["graph_key"] is None:
        words |= {word for word in (row["top"], row["holder"]) if word}
    return words - _ANYWHERE - _ARRANGING


def by_shape_alone(rows: Sequence[Row], keyed: Sequence[list[Key]]) -> list[list[Key]]:
    """``keyed`` with a key more for library work without a partner that differs in its line only.

    A pass that merges products (``mm`` and ``add`` into ``addmm``) leaves the new one no line.
    """
    roots = components(keyed)
    stances: dict[int, set[str]] = {}
    for row, root in zip(rows, roots, strict=True):
        stances.setdefault(root, set()).add(row["stance"])
    found = []
    for row, mine, root in zip(rows, keyed, roots, strict=True):
        # Eager work in a region, or a compiled graph's call without a line.
        homeless = row["region"] is not None
        if row["stance"] == "compiled":
            homeless = None not in (row["graph_key"], row["how"]) and not row["lines"]
        alone = row["shape"] and len(stances[root]) == 1 and homeless
        found.append([*mine, ("shape", row["shape"], row["kind"], _way(row))] if alone else mine)
    return found


def components(keyed: Sequence[list[Key]]) -> list[int]:
    """A number for each list of keys: equal where they belong together; those without are alone."""
    parent = list(range(len(keyed)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[Key, int] = {}
    for i, mine in enumerate(keyed):
        for key in mine:
            parent[root(i)] = root(first.setdefault(key, i))
    return [root(i) for i in range(len(keyed))]


def group_row(members: Iterable[Row]) -> Row:
    """One row of ``match_groups`` without its number; members are rows of one component."""
    sides: dict[str, list[Row]] = {"eager": [], "compiled": []}
    for row in members:
        sides[row["stance"]].append(row)
    eager, compiled = sides["eager"], sides["compiled"]
    every = eager + compiled
    kind = "library" if any(row["graph_key"] for row in compiled) else "same"
    if not (eager and compiled):
        kind = "eager_only" if eager else "compiled_only"
    elif any(row["category"].startswith("generated_") for row in compiled):
        kind = "fused"
    hows = [row["how"] for row in every if row["how"]]
    return {
        "kind": kind,
        "matched": bool(eager and compiled),
        **{f"{s}_kernels": _total(rows, "count") for s, rows in sides.items()},
        **{f"{s}_ms": _total(rows, "ms") for s, rows in sides.items()},
        "eager_casts_ms": _total([row for row in eager if row["is_cast"]], "ms"),
        "ops": _distinct(op for row in compiled or eager for op in row["ops"]),
        "shape": shapes.pop() if len(shapes := {row["shape"] for row in every}) == 1 else None,
        "lines": _distinct(line for row in every for line in row["lines"]),
        "compile_ids": _distinct(row["compile_id"] for row in compiled if row["compile_id"]),
        "clock": every[0]["clock"],
        "how": max(hows, key=HOW.index) if hows else None,
    }


def _total(rows: Sequence[Row], column: str) -> float | None:
    values = [row[column] for row in rows]
    return None if None in values else sum(values)


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


#: The part of a set's kernels whose operators its partner has to hold.
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

    def partner(self, sets: Sequence[_Set], computing: _Computing) -> _Set | None:
        """The set whose other stance computes most of what this one computes; None if none does."""
        alone = [stance for stance, other in _OTHER.items() if not self.words[other]]
        if not alone:
            return None
        mine, other = self.words[alone[0]], _OTHER[alone[0]]

        def shared(candidate: _Set) -> tuple[int, bool]:
            matched = bool(candidate.words[alone[0]])
            if not self.places & candidate.places:
                return 0, matched
            theirs = {word for words in candidate.words[other] for word in words.own}
            free = set() if matched else theirs
            return sum(bool(words.around & theirs or words.own & free) for words in mine), matched

        asked = {word for words in mine for word in words.own | words.around}
        found = {number for word in asked for number in computing.get((other, word), ())}
        best = max((sets[number] for number in sorted(found)), key=shared, default=None)
        enough = best is not None and shared(best)[0] >= max(1, _ENOUGH * len(mine))
        return best if enough else None


def with_leftovers(rows: Sequence[Row], keyed: Sequence[list[Key]]) -> list[list[Key]]:
    """``keyed`` with a key more for each set of one stance that has found its partner.

    The rows of such a set say in ``how`` that operators joined them.
    """
    sets: dict[int, _Set] = {}
    for number, root in enumerate(components(keyed)):
        row, found = rows[number], sets.setdefault(root, _Set())
        every = operators_of(row)
        own = every & {operator_word(op) for op in row["ops"]}
        found.rows.append(number)
        found.words[row["stance"]].append(_Words(own, every - own))
        if row["region"] is not None:
            found.places.add((row["region"], bool(row["is_backward"])))
    given = [list(mine) for mine in keyed]
    every_set = list(sets.values())
    computing: dict[tuple[str, str], list[int]] = {}
    for number, one in enumerate(every_set):
        for stance, words in one.words.items():
            for word in {own for each in words for own in each.own}:
                computing.setdefault((stance, word), []).append(number)
    for root, left in sets.items():
        partner = left.partner(every_set, computing)
        if partner is None:
            continue
        for number in left.rows:
            rows[number]["how"] = "operator"
        for number in (*left.rows, *partner.rows):
            given[number].append(("leftover", str(root)))
    return given


#: Stance and operator → numbers of the sets that compute it there.
_Computing = Mapping[tuple[str, str], Sequence[int]]

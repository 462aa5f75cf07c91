"""Three kinds of speedup: how much of the difference is fusion, dispatch, specialised code."""

from __future__ import annotations

from collections.abc import Sequence

from traceview.derive.causes import UNEXPLAINED, UNNAMED
from traceview.diagnosis.explanation import Effect
from traceview.words.numbers import milliseconds

#: The effects of the waterfall that make up each kind, in words: where it saves, where it costs.
KINDS = {
    "fusion": {
        "fusion": ("fewer and shorter kernels", "slower kernels"),
        "page_faults": ("less new memory to touch", "more new memory to touch"),
        "casts_saved": ("fewer casts", "more casts"),
        "less_work": ("less work", "more work"),
        "recompute": ("recomputing", "recomputing"),
    },
    "dispatch": {
        "launches_saved": ("less launching", "longer launching"),
        "overheads_added": ("overheads", "overheads"),
    },
    "specialised code": {
        "cudagraphs": ("cudagraphs", "cudagraphs"),
        "library_choice": ("faster library kernels", "slower library kernels"),
        "copies_added": ("copies", "copies"),
    },
}
#: A kind below this part of the difference is not named.
NAMED = 0.02
#: The kinds explain the difference if no more than this part of it lies elsewhere.
ELSEWHERE = 0.5


def kinds_of_speedup(effects: Sequence[Effect]) -> str:
    """A sentence on where the difference comes from; empty if there is none or it cannot be said.

    "Of the 0.617 ms saved, 0.493 ms come from specialised code (cudagraphs) and 0.103 ms from
    dispatch (less launching)."
    """
    change = sum(effect.ms for effect in effects)
    sign = 1.0 if change > 0 else -1.0
    kinds = {kind: [e for e in effects if e.effect in named] for kind, named in KINDS.items()}
    found = {kind: sign * sum(effect.ms for effect in mine) for kind, mine in kinds.items()}
    elsewhere = abs(change) - sum(found.values())
    least = NAMED * abs(change)
    along = sorted((k for k in found if found[k] >= least), key=lambda kind: -found[kind])
    against = sorted((k for k in found if found[k] <= -least), key=lambda kind: found[kind])
    if not change or not along or abs(elsewhere) > ELSEWHERE * abs(change):
        return ""
    came = [(found[kind], _with_largest(kind, kinds[kind], sign)) for kind in along]
    went = [(-found[kind], _with_largest(kind, kinds[kind], -sign)) for kind in against]
    back = ("are saved by", "by") if change > 0 else ("are lost to", "to")
    total = f"Of the {milliseconds(abs(change))} {'lost' if change > 0 else 'saved'}"
    clauses = [f"{total}, {_list(came, 'come from', 'from')}"]
    if went:
        clauses.append(_list(went, *back))
    unexplained = sign * sum(e.ms for e in effects if e.effect == UNEXPLAINED)
    if abs(others := elsewhere - unexplained) >= least:
        verb = "come from" if others > 0 else back[0]
        clauses.append(f"{milliseconds(abs(others))} {verb} other causes")
    if abs(unexplained) >= least:
        which = "" if unexplained > 0 else "saved and " if change > 0 else "lost and "
        clauses.append(f"{milliseconds(abs(unexplained))} are {which}unexplained")
    return "; ".join(clauses) + "."


def largest_loss(effects: Sequence[Effect]) -> str:
    """A sentence on the effect that costs most; empty where it is of none of the three kinds."""
    named = [effect for effect in effects if effect.effect not in UNNAMED]
    largest = max(named, key=lambda effect: effect.ms, default=None)
    if largest is None or largest.ms <= 0:
        return ""
    kind = next((kind for kind, members in KINDS.items() if largest.effect in members), None)
    if kind is None:
        return ""
    return f"Most is lost to {_with_largest(kind, [largest], 1.0)}: {milliseconds(largest.ms)}."


def _with_largest(kind: str, effects: Sequence[Effect], sign: float) -> str:
    """``specialised code (cudagraphs)``: the kind with the effect that counts most in it."""
    largest = max(effects, key=lambda effect: sign * effect.ms)
    saves, costs = KINDS[kind][largest.effect]
    return f"{kind} ({saves if sign < 0 else costs})"


def _list(amounts: Sequence[tuple[float, str]], first: str, later: str) -> str:
    """``0.5 ms come from a, 0.3 ms from b and 0.1 ms from c``."""
    said = [
        f"{milliseconds(ms)} {later if number else first} {what}"
        for number, (ms, what) in enumerate(amounts)
    ]
    return " and ".join(text for text in (", ".join(said[:-1]), said[-1]) if text)

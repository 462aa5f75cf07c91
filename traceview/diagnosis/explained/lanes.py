"""Events as the spans of one lane: what was innermost at each moment, short ones merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

#: Spans that one lane has room for.
MOST_SPANS = 250
#: Characters of a label.
LABEL = 60
#: Neighbours that fit into the resolution, a part of the step, become one span; it is doubled until
#: the lane fits (two neighbours reach further than it, so at the coarsest at most 161 are left).
FINEST, COARSEST = 1 / 5120, 1 / 80


class Event(msgspec.Struct, frozen=True):
    """Something on one thread or stream, in ns; not ``drawn``: it only lends its category."""

    start: int
    end: int
    label: str
    category: str
    drawn: bool = True


def innermost(events: Iterable[Event]) -> list[Event]:
    """Nested ``events`` as disjoint stretches in order, each with its innermost drawn event.

    An event of category ``other`` takes the first known category inside it: autograd's and other
    outer operators stand for the work that they lead to.
    """
    ordered = sorted(events, key=lambda event: (event.start, -event.end))
    categories = [event.category for event in ordered]
    stretches: list[tuple[int, int, int]] = []
    open_: list[tuple[int, int]] = []  # end, index
    at = 0
    for index, event in enumerate(ordered):
        at = _advance(open_, stretches, at, event.start)
        if event.drawn:
            open_.append((min(event.end, open_[-1][0]) if open_ else event.end, index))
        elif open_ and categories[open_[-1][1]] == "other":
            categories[open_[-1][1]] = event.category
    _advance(open_, stretches, at, max((event.end for event in ordered), default=0))
    return [
        replace(ordered[index], start=start, end=end, category=categories[index])
        for start, end, index in stretches
    ]


def _advance(
    open_: list[tuple[int, int]], stretches: list[tuple[int, int, int]], at: int, until: int
) -> int:
    """Close what ends by ``until``; the stretches from ``at`` go to what was open last."""
    while open_:
        end, index = open_[-1]
        stop = min(end, until)
        if stop > at:
            same = stretches and stretches[-1][1:] == (at, index)
            stretches.append((stretches.pop()[0] if same else at, stop, index))
            at = stop
        if end > until:
            break
        open_.pop()
    return until


def fitted(events: Sequence[Event], length: int) -> list[Event]:
    """``events`` (in order) of a step of ``length`` ns, short neighbours merged until they fit."""
    part = FINEST
    while len(events) > MOST_SPANS:
        merged = _merged(events, length * part)
        if len(merged) <= MOST_SPANS or part >= COARSEST:
            return merged
        part *= 2
    return list(events)


def _merged(events: Sequence[Event], resolution: float) -> list[Event]:
    merged: list[Event] = []
    run: list[Event] = []
    for event in events:
        if run and event.end - run[0].start > resolution:
            merged.append(_one(run))
            run = []
        run.append(event)
    if run:
        merged.append(_one(run))
    return merged


def _one(run: Sequence[Event]) -> Event:
    """Several events as one, as long as they are together: so a lane shows its true busy time."""
    if len(run) == 1:
        return run[0]
    times: Counter[str] = Counter()
    for event in run:
        times[event.category] += event.end - event.start
    labels = ", ".join(dict.fromkeys(event.label for event in run))
    start = run[0].start
    end = min(start + times.total(), max(event.end for event in run))
    return Event(start, end, cut(f"{len(run)}: {labels}"), times.most_common(1)[0][0])


def cut(text: str) -> str:
    """``text`` as a label."""
    return text if len(text) <= LABEL else text[: LABEL - 1] + "…"

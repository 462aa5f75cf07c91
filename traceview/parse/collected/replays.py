"""Is a replayed call, made again after the script's end, all that a step of the script's does?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from traceview.parse.collected.events import Event, Process

#: The script's own blocks from which on they are not given up for replayed ones.
ENOUGH_OWN = 3
#: Replayed calls take the time of the script's steps if they lie among its blocks, or so near.
SAME_TIME = 0.05


def per_step_ms(block: Mapping[str, Any]) -> float | None:
    """Milliseconds of one step of a block by its own clock; None without steps or time."""
    steps, ms = block.get("steps"), block.get("duration_ms")
    if not isinstance(steps, int) or not isinstance(ms, (int, float)) or steps <= 0 or ms <= 0:
        return None
    return float(ms) / steps


def are_alike(steps: Sequence[float], calls: Sequence[float]) -> bool:
    """Whether replayed calls take the time of steps, ms of each block."""
    low, high = min(steps) * (1 - SAME_TIME), max(steps) * (1 + SAME_TIME)
    return low <= median(calls) <= high


def profiled(process: Process) -> Iterator[Event]:
    """The ``profile`` events that count.

    One of replayed calls does where they are all of a step and it has as many, or where there is no
    other: a backward, or whatever follows a call, is in none of them.
    """
    blocks: dict[tuple[str, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for event in process.of("block"):
        if (ms := per_step_ms(event)) is not None:
            side = str(event.get("anchor_region_id")), str(event.get("stance"))
            blocks[side][bool(event.get("replayed"))].append(ms)
    # Anchors whose replayed calls take another time than the script's steps.
    partial = {
        anchor
        for (anchor, _), (steps, calls) in blocks.items()
        if len(steps) >= ENOUGH_OWN and calls and not are_alike(steps, calls)
    }
    own: dict[tuple[str, ...], int] = {}
    for event in process.of("profile"):
        key = tuple(str(event.get(name)) for name in ("anchor_region_id", "stance", "purpose"))
        steps = event.get("steps")
        steps = steps if isinstance(steps, int) else 0
        if not event.get("replayed"):
            own[key] = steps
        elif key in own and (key[0] in partial or steps < own[key]):
            continue
        yield event

"""Caches in the story of a job, as plain data; ``model`` holds the rest and offers these too."""

from __future__ import annotations

import msgspec


class Ranks(msgspec.Struct, frozen=True):
    """A set of ranks: how many, and in words ("ranks 0–16 and 18–63", "process 4711")."""

    count: int
    text: str


class CacheRow(msgspec.Struct, frozen=True):
    """Look-ups of one of torch's caches by how they ended, over all ranks."""

    cache: str
    counts: dict[str, int]
    ranks: Ranks


class Bypass(msgspec.Struct, frozen=True):
    """A reason that kept graphs out of a cache."""

    cache: str
    reason: str
    times: int
    ranks: Ranks


class Side(msgspec.Struct, frozen=True):
    """One value of what differs, with the ranks (and the attempt) that had it."""

    ranks: Ranks
    value: str | None
    outcome: str | None = None
    pass_name: str | None = None


class KeyDifference(msgspec.Struct, frozen=True):
    """What differs in the cache keys of one compile: ``between`` ranks, attempts or starts.

    ``component`` is torch's name for it (inductor_config[max_autotune], gm, example_inputs[0]);
    None: the keys are the same, and one side's cache did not hold it. ``kind`` is settings, graph,
    inputs, versions, folder or unknown. ``seconds``: what the misses took beyond a hit.
    """

    cache: str
    component: str | None
    kind: str
    between: str
    sides: tuple[Side, ...]
    functions: tuple[str, ...]
    compiles: int
    seconds: float | None
    text: str


class JobCaches(msgspec.Struct, frozen=True):
    """Caches over all ranks."""

    rows: tuple[CacheRow, ...] = ()
    bypasses: tuple[Bypass, ...] = ()
    differences: tuple[KeyDifference, ...] = ()
    left_out: int = 0

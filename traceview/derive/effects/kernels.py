"""Kernels (on a CPU: operators) of both stances, their time on the step as timed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from traceview.derive.effects.parts import OTHER_KERNELS, Part, difference

Row = dict[str, Any]
STANCES = ("eager", "compiled")
#: Milliseconds below which a remainder is the rounding of floating point.
ROUNDING = 1e-9


class Kernel(msgspec.Struct, frozen=True):
    """A row of ``matched_kernels``; ``ms`` is on the step as timed, as in ``accounting``.

    ``backward``: of an eager kernel, that its line is known by its forward.
    """

    stance: str
    group_id: int | None
    name: str
    category: str
    operator: str
    file: str | None
    line: int | None
    backward: bool
    compile_key: tuple[str | None, str | None]
    ops: frozenset[str]
    nodes: frozenset[str]
    count: float
    ms: float
    clock: str


def timed_kernels(matched: Sequence[Row], accounts: Sequence[Row]) -> list[Kernel]:
    """``matched`` (rows of one pass and rank) with the accounting's time.

    The accounting counts overlapping kernels once and, on a CPU, takes the profiler's cost out of
    them: all kernels of one category carry that in proportion to their time. Kernels that
    ``matched`` lacks are left to ``not_listed``.
    """
    scale = _scales(matched, accounts)
    return [
        Kernel(
            row["stance"], row["group_id"], row["name"], row["category"],
            row["cpu_op"] or row["name"], row["file"], row["line"], row["how"] == "forward",
            (row["compile_id"], row["aot_id"]),
            frozenset(row["ops"] or ()), frozenset(row["source_nodes"] or ()),
            row["count"] or 0.0, row["ms"] * scale[row["stance"], row["category"]],
            row["clock"] or "host",
        )
        for row in matched
        if row["ms"] is not None and (row["stance"], row["category"]) in scale
    ]  # fmt: skip


def _scales(matched: Sequence[Row], accounts: Sequence[Row]) -> dict[tuple[str, str], float]:
    """(stance, category) → the accounting's ms for one ms of the kernels' own."""
    own: dict[tuple[str, str], float] = defaultdict(float)
    for row in matched:
        own[row["stance"], row["category"]] += row["ms"] or 0.0
    scales = {}
    for row in accounts:
        key = (row["stance"], row["category"])
        whole = max(own[key], row["profiled_ms"] or 0.0)
        if row["kind"] == "busy" and whole > 0.0:
            scales[key] = row["ms"] / whole
    return scales


def not_listed(kernels: Sequence[Kernel], accounts: Sequence[Row]) -> list[Part]:
    """Busy time of the accounting that no row of ``kernels`` stands for, by category."""
    left: dict[str, dict[str, float]] = defaultdict(dict)
    clocks = {}
    for row in accounts:
        if row["kind"] == "busy":
            left[row["category"]][row["stance"]] = row["ms"]
            clocks[row["category"]] = row["clock"]
    for kernel in kernels:
        left[kernel.category][kernel.stance] -= kernel.ms
    parts = []
    for category, sides in left.items():
        eager, compiled = (_or_none(sides.get(stance, 0.0)) for stance in STANCES)
        if eager is not None or compiled is not None:
            ms = difference(eager, compiled)
            parts.append(
                Part(OTHER_KERNELS, category, ms, eager, compiled, clocks[category], derived=False)
            )
    return parts


def _or_none(ms: float) -> float | None:
    return ms if abs(ms) > ROUNDING else None

"""Why the two columns differ: named effects whose sum is the difference.

Where the machine was slower or faster in the timed blocks than around the profiler window, it was
so for all of a stance's step: each of its times is scaled to the step as timed.

parts     one part of an effect, the order of effects
kernels   kernels of both stances on the step as timed; on a CPU, what touching new memory takes
graphs    what the graphs prove: operations that went away, nodes computed again
groups    match groups as parts
idle      everything but kernels as parts

library_pairs    the same work of a library, or of the user's Triton kernels, in both stances
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import polars as pl

from traceview.derive.causes import COMPILE, HOST_COMPILE, SPEED
from traceview.derive.effects.graphs import GraphFacts
from traceview.derive.effects.groups import group_parts
from traceview.derive.effects.idle import idle_parts
from traceview.derive.effects.kernels import (
    ROUNDING,
    STANCES,
    Kernel,
    not_listed,
    timed_kernels,
    without_page_faults,
)
from traceview.derive.effects.library_pairs import OwnKernels, library_pairs
from traceview.derive.effects.parts import ORDER, UNEXPLAINED, Part
from traceview.tables import Tables, from_rows, grouped

__all__ = ["effect_tables"]

Row = dict[str, Any]
_COMPILES = (COMPILE, HOST_COMPILE)
#: What of a part is a column of ``waterfall_rows``.
_SHOWN = ("effect", "group_id", "what", "file", "line", "eager_ms", "compiled_ms", "ms")


def effect_tables(tables: Tables) -> dict[str, pl.DataFrame]:
    """waterfall, waterfall_rows and library_pairs; none where one stance is missing."""
    effects: list[Row] = []
    rows: list[Row] = []
    pairs: list[Row] = []
    ranks = tables["speedups"].unique(("pass", "rank"), keep="first", maintain_order=True)
    for speedup in ranks.iter_rows(named=True):
        head = {"pass": speedup["pass"], "rank": speedup["rank"]}
        parts, kernels = _parts(tables, speedup)
        own = OwnKernels.of(
            _rows(tables, "kernel_groups", speedup), _rows(tables, "generated_kernels", speedup)
        )
        pairs += [{**head, **row} for row in library_pairs(kernels, own)]
        by_effect = grouped(parts, by=attrgetter("effect"))
        for order, effect in enumerate(effect for effect in ORDER if effect in by_effect):
            mine = by_effect[effect]
            # Time in both stances; not known where of some part only the difference is.
            sides: dict[str, float | None] = {}
            if not any(p.eager_ms is None and p.compiled_ms is None and p.ms for p in mine):
                for side in ("eager_ms", "compiled_ms"):
                    known = [ms for part in mine if (ms := getattr(part, side)) is not None]
                    sides[side] = sum(known) if known else None
            row = {
                "order": order,
                "effect": effect,
                "ms": sum(part.ms for part in mine),
                **sides,
                "clock": mine[0].clock or speedup["clock"],
                "confidence": "derived" if any(part.derived for part in mine) else "measured",
            }
            effects.append({**head, **row})
        # By effect, the largest change first.
        parts.sort(key=lambda part: (ORDER.index(part.effect), -abs(part.ms)))
        rows += [{**head, **{name: getattr(part, name) for name in _SHOWN}} for part in parts]
    if not effects:
        return {}
    return {
        "library_pairs": from_rows("library_pairs", pairs),
        "waterfall": from_rows("waterfall", effects),
        "waterfall_rows": from_rows("waterfall_rows", rows),
    }


def _parts(tables: Tables, speedup: Row) -> tuple[list[Part], list[Kernel]]:
    """All parts for one pass and rank, and the kernels of both stances.

    None unless both stances were timed and profiled.
    """
    timed = {stance: speedup[f"{stance}_ms"] for stance in STANCES}
    accounts = [row for row in _rows(tables, "accounting", speedup) if row["ms"] is not None]
    if None in timed.values() or {row["stance"] for row in accounts} != set(STANCES):
        return [], []
    if not speedup["compiles_inside"]:  # timed without the compiles that the window caught
        caught: dict[str, float] = defaultdict(float)
        for row in accounts:
            if row["category"] in _COMPILES:
                caught[row["stance"]] += row["ms"]
        accounts = [
            row | {"ms": row["ms"] + caught[row["stance"]]} if row["kind"] == "unexplained" else row
            for row in accounts
            if row["category"] not in _COMPILES
        ]
    slower = {stance: _slower(accounts, stance) for stance in STANCES}
    accounts = _as_timed((row for row in accounts if row["category"] != SPEED), slower)
    kernels = timed_kernels(_rows(tables, "matched_kernels", speedup), accounts)
    groups = {row["group_id"]: row for row in _rows(tables, "match_groups", speedup)}
    facts = GraphFacts(tables["graphs"].filter(pl.col("pass") == speedup["pass"]))
    counts = {row["stance"]: row for row in _rows(tables, "step_counts", speedup)}
    parts = not_listed(kernels, accounts)
    working, faults = without_page_faults(kernels, counts, tables)
    parts += group_parts(working, groups, facts)
    parts += faults
    details = _as_timed(_rows(tables, "account_details", speedup), slower)
    parts += idle_parts(accounts, details, counts)
    # What the accountings leave, and what no part stands for: the sum is then the difference.
    rows = {row["stance"]: row for row in accounts if row["kind"] == "unexplained"}
    eager, compiled = (rows.get(stance, {}).get("ms") for stance in STANCES)
    clock = next((row["clock"] for row in rows.values()), "host")
    left = Part.of(UNEXPLAINED, UNEXPLAINED, (eager, compiled), clock, derived=False)
    rest = timed["compiled"] - timed["eager"] - sum(part.ms for part in parts) - left.ms
    parts.append(left)
    if abs(rest) > ROUNDING:
        parts.append(
            Part(UNEXPLAINED, "not in the accounting", rest, None, None, clock, derived=False)
        )
    return parts, kernels


def _slower(accounts: Sequence[Row], stance: str) -> Callable[[Row], float]:
    """How many times as long each row took in the timed blocks as around the window.

    A step that waits for the host for longer than its device works is as slow as the host: then its
    kernels take as long as ever.
    """
    mine = [row for row in accounts if row["stance"] == stance]
    speed = sum(row["ms"] for row in mine if row["category"] == SPEED)
    idle, busy = (sum(row["ms"] for row in mine if row["kind"] == k) for k in ("idle", "busy"))
    of_host = idle > busy and idle + speed > 0
    whole = idle if of_host else sum(row["ms"] for row in mine) - speed
    factor = (whole + speed) / whole if whole > 0 else 1.0
    kernels = {row["category"] for row in mine if of_host and row["kind"] != "idle"}
    return lambda row: 1.0 if row["category"] in kernels else factor


def _as_timed(rows: Iterable[Row], slower: Mapping[str, Callable[[Row], float]]) -> list[Row]:
    """``rows`` on the step as timed."""
    return [
        row | {"ms": row["ms"] * slower[row["stance"]](row)} if row["ms"] is not None else row
        for row in rows
    ]


def _rows(tables: Tables, name: str, speedup: Row) -> list[Row]:
    """Rows of a table that belong to the pass and rank of ``speedup``."""
    rank = pl.lit(speedup["rank"], dtype=pl.Int32)
    mine = pl.col("pass").eq(speedup["pass"]) & pl.col("rank").eq_missing(rank)
    return tables[name].filter(mine).to_dicts()

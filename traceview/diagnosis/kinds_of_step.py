"""Scripts that time several compiled callables: whose steps the verdict is about, and the others'.

The collector follows one region's calls at a time; each such anchor has its own block pairs.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import Verdict
from traceview.tables import Tables
from traceview.words.numbers import plural, ratio

#: Pairs of another callable below which nothing is said of it.
ENOUGH_PAIRS = 3
MOST_NAMED = 3


def other_steps(tables: Tables, focus: Focus, verdict: Verdict) -> str:
    """A sentence on the callables that the verdict is not about; empty where there is one only."""
    if verdict.basis != "paired_blocks" or verdict.outcome not in ("helped", "neutral", "hurt"):
        return ""
    ratios: dict[int, list[float]] = defaultdict(list)
    mine: set[int] = set()
    for row in focus.rows(tables["block_pairs"]):
        anchor = row["anchor_region_id"]
        if anchor is None or row["speedup"] is None or row["compiles_inside"]:
            continue
        ratios[anchor].append(row["speedup"])
        if row["used"]:
            mine.add(anchor)
    names = {row["region_id"]: row["name"] for row in focus.rows(tables["regions"])}
    others = [
        f"{names.get(anchor) or f'region {anchor}'} {ratio(median(values))} "
        f"({plural(len(values), 'block pair')})"
        for anchor, values in ratios.items()
        if anchor not in mine and len(values) >= ENOUGH_PAIRS
    ]
    if not others or len(mine) != 1:
        return ""
    about = names.get(next(iter(mine))) or "one callable"
    return f"This is about calls of {about}; timed as well: {', '.join(others[:MOST_NAMED])}."

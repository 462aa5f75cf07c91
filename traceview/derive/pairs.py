"""Table ``block_pairs``: each eager block with the compiled block of the same pair.

A block measures steps only if nothing else happened between its edges. A pair is left out, with the
reason in words, where a compile ended inside one of its blocks, where a block held other work (its
regions were called unusually often per step, or its steps took far longer or shorter than the other
blocks of that stance), or where it comes from the time when blocks were still growing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import median
from typing import Any

import msgspec
import polars as pl

from traceview.tables import Tables, from_rows

#: Full-size pairs from which on the smaller, earlier ones are not needed.
ENOUGH_FULL_SIZE = 4
#: A pair of less than this part of the largest pair's steps is from the time of growing.
FULL_SIZE = 0.5
#: A block is another kind of work if it is this many scaled MADs away *and* off by this ratio.
ROBUST_Z = 5.0
RATIO = 1.5
#: Region calls per step may differ from the usual number by this part.
CALLS_TOLERANCE = 0.1
#: Blocks of one stance below which "unusual" has no meaning.
ENOUGH_TO_JUDGE = 4

Row = Mapping[str, Any]
_STANCES = ("eager", "compiled")


class _Pair(msgspec.Struct):
    """Two blocks of one pair index, and why the pair is left out (None: it is used)."""

    eager: Row
    compiled: Row
    left_out: str | None = None

    @property
    def steps(self) -> int:
        return min(self.eager["steps"] or 0, self.compiled["steps"] or 0)

    @property
    def compiles(self) -> int:
        return (self.eager["compiles_inside"] or 0) + (self.compiled["compiles_inside"] or 0)

    def row(self) -> dict[str, Any]:
        """The row of ``block_pairs``."""
        eager, compiled = per_step_ms(self.eager), per_step_ms(self.compiled)
        head = ("pass", "rank", "pid", "anchor_region_id", "pair_index")
        return {key: self.eager[key] for key in head} | {
            "eager_ms": eager,
            "compiled_ms": compiled,
            "speedup": eager / compiled if eager and compiled else None,
            "steps": self.steps,
            "clock": self.compiled["clock"],
            "used": self.left_out is None,
            "compiles_inside": self.compiles,
            "left_out": self.left_out,
        }


def block_pairs(tables: Tables) -> pl.DataFrame:
    """Table ``block_pairs`` of every process and anchor; only those of the main one can be used."""
    # Process → anchor → pair index → stance → block.
    processes: dict[tuple[Any, ...], dict[int | None, dict[int, dict[str, Row]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(dict))
    )
    for block in tables["blocks"].iter_rows(named=True):
        anchors = processes[block["pass"], block["rank"], block["pid"]]
        sides = anchors[block["anchor_region_id"]]
        if block["pair_index"] is not None and block["stance"] in _STANCES:
            sides[block["pair_index"]][block["stance"]] = block
    rows: list[dict[str, Any]] = []
    for anchors in processes.values():
        paired = {
            anchor: [
                _Pair(side["eager"], side["compiled"])
                for _, side in sorted(sides.items())
                if len(side) == 2
            ]
            for anchor, sides in anchors.items()
        }
        timed = {
            anchor: sum(b["duration_ms"] or 0.0 for p in pairs for b in (p.eager, p.compiled))
            for anchor, pairs in paired.items()
        }
        main = max(timed, key=lambda anchor: timed[anchor])
        _judge(paired[main])
        for anchor, pairs in paired.items():
            for pair in pairs:
                if anchor != main:
                    pair.left_out = "other steps: another region's calls were timed for longer"
                rows.append(pair.row())
    return from_rows("block_pairs", rows)


def per_step_ms(block: Row) -> float | None:
    """Milliseconds of one step of a block by its own clock; None without steps or time."""
    if not block["steps"] or not block["duration_ms"] or block["duration_ms"] <= 0:
        return None
    return float(block["duration_ms"]) / int(block["steps"])


def _judge(pairs: list[_Pair]) -> None:
    """Write into each pair why it is left out, if it is."""
    for pair in pairs:
        if per_step_ms(pair.eager) is None or per_step_ms(pair.compiled) is None:
            pair.left_out = "no time was recorded"
        elif pair.eager["clock"] != pair.compiled["clock"]:
            pair.left_out = "the two blocks were timed by different clocks"
    readable = [pair for pair in pairs if pair.left_out is None]
    quiet = [pair for pair in readable if pair.compiles == 0]
    # A script that never goes quiet has a compile in every pair: then that is its steady state.
    if quiet:
        for pair in readable:
            if pair.compiles:
                pair.left_out = f"{pair.compiles} compile(s) ended inside"
    kept = quiet or readable
    # Small blocks are noisy: judged with the others, they would pass for other work.
    largest = max((pair.steps for pair in kept), default=0)
    small = [pair for pair in kept if pair.steps < FULL_SIZE * largest]
    if len(kept) - len(small) >= ENOUGH_FULL_SIZE:
        for pair in small:
            pair.left_out = f"warming up: blocks of {pair.steps} steps, later ones of {largest}"
    full = [pair for pair in kept if pair.left_out is None]
    if len(full) >= ENOUGH_TO_JUDGE:
        _leave_out_other_work(full)


def _leave_out_other_work(pairs: list[_Pair]) -> None:
    """Leave out pairs with a block whose work differs from that of the other blocks.

    By region calls of a step, and by its time: robust z-score, and ratio.
    z = 0.6745 · |x − median| / MAD (B. Iglewicz and D. Hoaglin, "How to Detect and Handle
    Outliers", 1993).
    """
    blocks: dict[str, list[Row]] = {s: [getattr(pair, s) for pair in pairs] for s in _STANCES}
    for stance, mine in blocks.items():
        # Calls within calls are only seen in eager: compiled code holds what they do.
        known = [b["region_calls"] / b["steps"] for b in mine if b["region_calls"] is not None]
        usual = median(known) if known else 0.0
        # The host's time shows foreign work anywhere.
        times = [float(b["host_ms"] or b["duration_ms"]) / int(b["steps"]) for b in mine]
        middle = median(times)
        spread = median(abs(time - middle) for time in times)
        for pair, block, ms in zip(pairs, mine, times, strict=True):
            odd = None
            calls = (
                usual if block["region_calls"] is None else block["region_calls"] / block["steps"]
            )
            off = abs(calls - usual)
            # A call more or less at the edges is no other work, however short the block.
            if off * block["steps"] > 1 and off > CALLS_TOLERANCE * max(usual, 1.0):
                odd = f"{calls:.3g} region calls a step, elsewhere {usual:.3g}"
            ratio = max(ms / middle, middle / ms)
            if not odd and ratio > RATIO and 0.6745 * abs(ms - middle) > ROBUST_Z * spread:
                odd = f"{ms:.3g} ms a step on the host, elsewhere {middle:.3g} ms"
            if odd:
                pair.left_out = f"other work between the edges of the {stance} block: {odd}"

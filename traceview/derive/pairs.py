"""Pairs of blocks of two stances; table ``block_pairs``: each eager block with the compiled one.

A block measures steps only if nothing else happened between its edges. A pair is left out, with the
reason in words, where a compile ended inside one of its blocks, where a block held other work (its
regions were called unusually often per step, or its steps took far longer or shorter than the other
blocks of that stance), or where it comes from the time when blocks were still growing and longer
ones hold nearly all steps. Pairs that were replayed after the script's end are left out where the
script's own pairs took another time: its steps are more than those calls; and where the script's
steps never stop compiling or recording: a replayed call repeats one call's inputs, and needs none.

A pair counts by its length: its weight is the harmonic mean of the steps of both blocks. The
variance of the ratio's logarithm is the sum of those of both blocks, and the variance of a mean
over steps falls with their number. It falls as far as that between blocks, which is all the same
for long ones: from half the length of the longest on, pairs weigh the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

import msgspec
import polars as pl

from traceview.parse.collected.replays import ENOUGH_OWN, are_alike, per_step_ms
from traceview.tables import Tables, from_rows

#: Full-size pairs from which on the smaller, earlier ones are not needed: resampling needs six.
ENOUGH_FULL_SIZE = 6
#: A pair of less than this part of the largest pair's steps is from the time of growing; such pairs
#: count all the same if they hold this part of all steps.
FULL_SIZE, NEEDED = 0.5, 0.3
#: Steps, the last ones before blocks: where half of them compile, the script does not settle.
WATCHED, _BEFORE_BLOCKS = 10, ("cold", "warmup")
#: A block is another kind of work if it is this many scaled MADs away *and* off by this ratio.
ROBUST_Z = 5.0
RATIO = 1.5
#: Region calls per step may differ from the usual number by this part.
CALLS_TOLERANCE = 0.1
#: Blocks of one stance below which "unusual" has no meaning.
ENOUGH_TO_JUDGE = 4

Row = Mapping[str, Any]
#: The two stances whose blocks alternate: what the other one is compared with comes first.
Stances = tuple[str, str]
EAGER_COMPILED: Stances = ("eager", "compiled")


class Pair(msgspec.Struct):
    """Two blocks of one pair index, and why the pair is left out (None: it is used).

    ``other_work``: because one of them held more than the usual steps.
    """

    base: Row
    other: Row
    left_out: str | None = None
    other_work: bool = False
    weight: float | None = None

    @property
    def steps(self) -> int:
        return min(self.base["steps"] or 0, self.other["steps"] or 0)

    @property
    def length(self) -> float:
        both = self.base["steps"] or 0, self.other["steps"] or 0
        return 2 * both[0] * both[1] / sum(both) if all(both) else 0.0

    @property
    def replayed(self) -> bool | None:
        """None in older recordings, which have none."""
        known: bool | None = self.base["replayed"]
        return known

    @property
    def compiles(self) -> int:
        return (self.base["compiles_inside"] or 0) + (self.other["compiles_inside"] or 0)

    @property
    def clock(self) -> str | None:
        return self.other["clock"]  # type: ignore[no-any-return]

    @property
    def base_ms(self) -> float | None:
        """Milliseconds of one step of either block."""
        return per_step_ms(self.base)

    @property
    def other_ms(self) -> float | None:
        return per_step_ms(self.other)

    def row(self) -> dict[str, Any]:
        """The row of ``block_pairs``."""
        eager, compiled = self.base_ms, self.other_ms
        head = ("pass", "rank", "pid", "anchor_region_id", "pair_index")
        return {key: self.base[key] for key in head} | {
            "eager_ms": eager,
            "compiled_ms": compiled,
            "speedup": eager / compiled if eager and compiled else None,
            "steps": self.steps,
            "weight": self.weight,
            "replayed": self.replayed,
            "clock": self.clock,
            "used": self.left_out is None,
            "compiles_inside": self.compiles,
            "other_work": self.other_work,
            "left_out": self.left_out,
        }


def block_pairs(tables: Tables) -> pl.DataFrame:
    """Table ``block_pairs`` of every process and anchor, whose steps are different ones."""
    # Processes whose steps, as long as they were watched, did not stop compiling.
    process = ("pass", "rank", "pid")
    restless = set(tables["runs"].filter(pl.col("never_quiet")).select(process).iter_rows())
    steps = tables["steps"].filter(pl.col("phase").is_in(_BEFORE_BLOCKS)).sort("step")
    last = steps.group_by(process, maintain_order=True).tail(WATCHED)
    counts = last.group_by(process).agg(pl.len(), busy=(pl.col("compiles_inside") > 0).sum())
    busy = counts.filter(pl.col("len") == WATCHED, 2 * pl.col("busy") >= WATCHED)
    restless |= set(busy.select(process).iter_rows())

    processes: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for block in tables["blocks"].iter_rows(named=True):
        processes[block["pass"], block["rank"], block["pid"]].append(block)
    return from_rows(
        "block_pairs",
        [
            pair.row()
            for key, blocks in processes.items()
            for pairs in paired(blocks, EAGER_COMPILED, key in restless).values()
            for pair in pairs
        ],
    )


def paired(
    blocks: Iterable[Row], stances: Stances, never_quiet: bool = False
) -> dict[int | None, list[Pair]]:
    """Anchor → pairs of the two stances' blocks of one process, each judged.

    ``never_quiet``: compiles went on as long as the plan waited for their end.
    """
    # Anchor → pair index → stance → block.
    anchors: dict[int | None, dict[int, dict[str, Row]]] = defaultdict(lambda: defaultdict(dict))
    for block in blocks:
        sides = anchors[block["anchor_region_id"]]
        if block["pair_index"] is not None and block["stance"] in stances:
            sides[block["pair_index"]][block["stance"]] = block
    base, other = stances
    found = {
        anchor: [
            Pair(side[base], side[other]) for _, side in sorted(sides.items()) if len(side) == 2
        ]
        for anchor, sides in anchors.items()
    }
    for pairs in found.values():
        _judge(pairs, never_quiet)
    return found


def _judge(pairs: list[Pair], never_quiet: bool) -> None:
    """Write into each pair why it is left out, if it is, or how much it weighs."""
    for pair in pairs:
        if pair.base_ms is None or pair.other_ms is None:
            pair.left_out = "no time was recorded"
        elif pair.base["clock"] != pair.other["clock"]:
            pair.left_out = "the two blocks were timed by different clocks"
    readable = [pair for pair in pairs if pair.left_out is None]
    # Some compile, or record a cudagraph, in most steps, if not in the first: that is their state.
    own = [pair.other for pair in readable if not pair.replayed]
    busy = sum(min(block["steps"], block["compiles_inside"] or 0) for block in own)
    busy_mostly = 0 < sum(block["steps"] for block in own) <= 2 * busy
    if never_quiet or busy_mostly:
        readable = _own_where_none_is_quiet(readable)
    quiet = [pair for pair in readable if pair.compiles == 0 and not busy_mostly]
    # A script that never goes quiet has a compile in every pair: then that is its steady state.
    if quiet:
        for pair in readable:
            if pair.compiles:
                pair.left_out = f"{pair.compiles} compile(s) ended inside"
                pair.other_work = True
    kept = _own_or_replayed(quiet or readable)
    # Small blocks weigh little, and are noisy: with the others they would pass for other work.
    largest = max((pair.steps for pair in kept), default=0)
    small = [pair for pair in kept if pair.steps < FULL_SIZE * largest]
    needed = sum(pair.steps for pair in small) >= NEEDED * sum(pair.steps for pair in kept)
    if len(kept) - len(small) >= ENOUGH_FULL_SIZE and not needed:
        for pair in small:
            pair.left_out = f"warming up: blocks of {pair.steps} steps, later ones of {largest}"
    for replayed in (False, True):  # a replayed call is one of perhaps several in a step
        full = [p for p in kept if p.steps >= FULL_SIZE * largest and bool(p.replayed) is replayed]
        if len(full) >= ENOUGH_TO_JUDGE:
            _leave_out_other_work(full)
    used = [pair for pair in kept if pair.left_out is None]
    most = FULL_SIZE * max((pair.length for pair in used), default=0.0)
    for pair in used:
        pair.weight = min(pair.length, most)


def _own_where_none_is_quiet(pairs: list[Pair]) -> list[Pair]:
    """The script's own pairs, where compiling goes on in all but a few of them."""
    own = [pair for pair in pairs if not pair.replayed]
    quiet = sum(not pair.compiles for pair in own)
    if quiet >= ENOUGH_OWN or 2 * quiet > len(own):
        return pairs
    for pair in pairs:
        if pair.replayed:
            pair.left_out = "a replayed call compiles and records nothing, the script's steps do"
    return own


def _own_or_replayed(pairs: list[Pair]) -> list[Pair]:
    """Those of ``pairs`` that are one kind of step: all, the script's own, or the replayed ones."""
    own = [pair for pair in pairs if not pair.replayed]
    replayed = [pair for pair in pairs if pair.replayed]
    if not own or not replayed:
        return pairs
    kept, others, why = own, replayed, "replayed calls are less than a step"
    if len(own) < ENOUGH_OWN:
        kept, others, why = (
            replayed,
            own,
            "replayed calls count: a step is more than a call",
        )
    for side in ("base", "other"):
        steps, calls = (
            [per_step_ms(getattr(pair, side)) or 0.0 for pair in some] for some in (own, replayed)
        )
        if not are_alike(steps, calls):
            stance = getattr(kept[0], side)["stance"]
            figures = f"{median(calls):.3g} ms a call ({stance}), {median(steps):.3g} ms a step"
            for pair in others:
                pair.left_out = f"{why}: {figures}"
            return kept
    return pairs


def _leave_out_other_work(pairs: list[Pair]) -> None:
    """Leave out pairs with a block whose work differs from that of the other blocks.

    By region calls of a step, and by its time: robust z-score, and ratio.
    z = 0.6745 · |x − median| / MAD (B. Iglewicz and D. Hoaglin, "How to Detect and Handle
    Outliers", 1993).
    """
    for mine in ([pair.base for pair in pairs], [pair.other for pair in pairs]):
        stance = mine[0]["stance"]
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
                if block["other_thread_calls"]:
                    odd = f"calls of other threads ran inside, {odd}"
            ratio = max(ms / middle, middle / ms)
            if not odd and ratio > RATIO and 0.6745 * abs(ms - middle) > ROBUST_Z * spread:
                odd = f"{ms:.3g} ms a step on the host, elsewhere {middle:.3g} ms"
            if odd:
                pair.left_out = f"other work between the edges of the {stance} block: {odd}"
                pair.other_work = True

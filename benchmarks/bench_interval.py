"""Does the interval hold the true speedup in 95 % of runs, and how many steps does the plan time?

The measuring plan runs on made-up scripts, whose steps have known times: no clock, no torch. Noise
is that of single steps, of whole seconds (a machine that is slower for a while), outliers (a step
that takes five times as long), and drift. Of each kind many runs are made with a fixed seed.

    python benchmarks/bench_interval.py [--runs 200]
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from traceview.collectors.child import plan
from traceview.collectors.child.pairs import Block, Pair, interval, paired
from traceview.derive.figures import figures
from traceview.derive.pairs import block_pairs
from traceview.tables import Tables, from_rows

TRUE = 1.5
NOISE: dict[str, Callable[[Random, int, float], float]] = {
    "quiet": lambda random, _step, _s: random.lognormvariate(0, 0.02),
    "noisy steps": lambda random, _step, _s: random.lognormvariate(0, 0.2),
    "outliers": lambda random, _step, _s: (
        random.lognormvariate(0, 0.05) * (5.0 if random.random() < 0.01 else 1.0)
    ),
    "slow seconds": lambda random, _step, s: (
        random.lognormvariate(0, 0.05) * (1.3 if int(s) % 3 == 1 else 1.0)
    ),
    "growing": lambda random, step, _s: random.lognormvariate(0, 0.05) * (1 + step / 500),
}


@dataclass
class Script:
    """Steps of ``compiled_ms`` and of TRUE times as much, with noise, run by the plan."""

    random: Random
    noise: Callable[[Random, int, float], float]
    compiled_ms: float
    step: int = 0
    seconds: float = 0.0
    stance: str = "compiled"
    known: dict[str, float] = field(default_factory=dict)
    blocks: list[tuple[int, str, int, float]] = field(default_factory=list)

    def run(self, steps: int, kind: str) -> list[Pair]:
        """The pairs that were measured by the end of the script or the plan."""
        self.known["compiled"] = self.compiled_ms
        pairs: list[Pair] = []
        open_: dict[int, dict[str, Block]] = {}
        running = plan.measuring_plan(plan.Settings())
        order: plan.Order | None = next(running)
        block: plan.OpenBlock | None = None
        began = 0.0
        while order is not None:
            if isinstance(order, plan.Take):
                self.stance = order.stance
            elif isinstance(order, plan.OpenBlock):
                block, began = order, self.seconds
            elif isinstance(order, plan.CloseBlock) and block is not None:
                ms = (self.seconds - began) * 1e3
                self.known[self.stance] = ms / block.steps
                if block.pair is not None:
                    self.blocks.append((block.pair, self.stance, block.steps, ms))
                    sides = open_.setdefault(block.pair, {})
                    sides[self.stance] = Block(ms, block.steps, 0)
                    if len(sides) == 2:
                        pairs.append(paired(block.pair, **open_.pop(block.pair)))
            elif isinstance(order, plan.Wait):
                for _ in range(order.steps):
                    times = TRUE if self.stance == "eager" else 1.0
                    ms = self.compiled_ms * times * self.noise(self.random, self.step, self.seconds)
                    self.seconds += ms / 1e3
                    self.step += 1
                if self.step >= steps:
                    return pairs
            moment = plan.Moment(
                self.step,
                self.seconds,
                0,
                dict(self.known),
                kind,
                pairs=pairs,  # type: ignore[arg-type]
            )
            try:
                order = running.send(moment)
            except StopIteration:
                return pairs
        return pairs

    def interval(self) -> tuple[float, float] | None:
        """The report's interval of the blocks."""
        head = {"pass": "cold", "pid": 1}
        rows = [
            {
                **head,
                **{"clock": "host", "compiles_inside": 0},
                **{"pair_index": pair, "stance": stance, "steps": steps, "region_calls": steps},
                **{"duration_ms": ms, "host_ms": ms},
            }
            for pair, stance, steps, ms in self.blocks
        ]
        run = {**head, "rank": None}
        tables = Tables({"blocks": from_rows("blocks", rows), "runs": from_rows("runs", [run])})
        found = figures(tables, block_pairs(tables), run)
        if found.speedup_low is None or found.speedup_high is None:
            return None
        return found.speedup_low, found.speedup_high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    args = parser.parse_args()
    print(
        "| noise | steps | ms | timed | pairs | holds 1.5 | half width | so far holds | steps run |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, noise in NOISE.items():
        for steps, ms, kind in (
            (210, 2.0, "call"),
            (570, 2.0, "call"),
            (210, 2.0, "optimizer"),
            (10**6, 2.0, "call"),
        ):
            holds = quick = known = 0
            widths, shares, counts, ran = [], [], [], []
            for seed in range(args.runs):
                script = Script(Random(seed), noise, ms)
                pairs = script.run(steps, kind)
                timed = sum(block[2] for block in script.blocks)
                shares.append(timed / (script.step - 4))
                counts.append(len(pairs))
                ran.append(script.step)
                early, found = interval(pairs), script.interval()
                quick += early is not None and early[0] <= TRUE <= early[1]
                known += early is not None
                if found is not None:
                    holds += found[0] <= TRUE <= found[1]
                    widths.append(math.sqrt(found[1] / found[0]) - 1)
            print(
                f"| {name} | {steps if steps < 10**6 else 'no end'} ({kind}) | {ms:g} "
                f"| {statistics.fmean(shares):.0%} | {statistics.fmean(counts):.1f} "
                f"| {holds / args.runs:.0%} | ±{100 * statistics.median(widths):.1f} % "
                f"| {quick / max(known, 1):.0%} | {statistics.median(ran):,.0f} |"
            )


if __name__ == "__main__":
    main()

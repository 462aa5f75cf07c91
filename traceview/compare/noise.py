"""Is a difference between two runs more than noise? What cannot be told apart is not claimed.

Timed steps: the ratio of the two medians with its 95 % bootstrap interval over the runs' own
blocks, widened by what the same script differs by from process to process (docs/measurements.md).
Seconds of compiling were measured once: they have to differ by more than a quarter, and by more
than the speed of either machine varied while its blocks were timed. Counts are exact.
"""

from __future__ import annotations

from statistics import median

import msgspec

from traceview.compare.figures import Interval, Kind, Measured
from traceview.compare.model import FigureChange, FigurePair
from traceview.compare.side import Side
from traceview.compare.values import number
from traceview.derive.bootstrap import ratio_interval

#: What the same step differs by between processes: paced by the device, by the host, and by a host
#: for which a step is short.
BY_DEVICE, BY_HOST, BY_HOST_SHORT = 0.05, 0.1, 0.2
SHORT_MS = 1.0
#: A device that is busy for this part of a step sets its pace.
PACED = 0.9
#: Fewer blocks than this have no interval worth the name.
LEAST_BLOCKS = 3
#: Figures whose blocks are in the diagnosis, and their name in a block pair.
IN_BLOCKS = {"speedup": "speedup", "compiled_ms": "compiled_ms", "eager_ms": "eager_ms"}
#: What the peak memory of a whole process differs by.
OF_PROCESS = 0.1
ONCE = ("s", "ms")


class Sides(msgspec.Struct, frozen=True, dict=True):
    """Both runs, and what their figures may differ by though nothing has changed."""

    before: Side
    after: Side

    def pair(self, kind: Kind) -> FigurePair:
        """One figure of both runs and whether it changed."""
        old, new = kind.read(self.before), kind.read(self.after)
        ratio = new.value / old.value if old.value and new.value is not None else None
        change, basis, interval = self._judged(kind, old, new)
        return FigurePair(
            key=kind.key,
            label=kind.label,
            unit=kind.unit,
            better=kind.better,
            before=old.value,
            after=new.value,
            before_interval=old.interval,
            after_interval=new.interval,
            ratio=ratio,
            ratio_interval=interval,
            change=change,
            basis=basis,
            at_least=old.at_least or new.at_least,
        )

    def _judged(
        self, kind: Kind, old: Measured, new: Measured
    ) -> tuple[FigureChange, str, Interval | None]:
        if old.value is None or new.value is None:
            which = "either run" if old.value is new.value else "one of the runs"
            return "not_recorded", f"not recorded in {which}", None
        if kind.key in IN_BLOCKS:
            return self._timed(kind)
        if old.value == new.value:
            return "same", "equal", None
        if kind.noise is None:
            return "within_noise", "follows from other figures", None
        noise = self._noise(kind.unit, kind.noise)
        if not beyond(old.value, new.value, noise, kind.least):
            return "within_noise", f"two equal runs may differ by {noise * 100:.0f} %", None
        basis = "counted" if not noise else f"differs by more than {noise * 100:.0f} %"
        return towards(kind, new.value - old.value), basis, None

    def _timed(self, kind: Kind) -> tuple[FigureChange, str, Interval | None]:
        clocks = {side.diagnosis.verdict.clock for side in (self.before, self.after)}
        old, new = (blocks(side, IN_BLOCKS[kind.key]) for side in (self.before, self.after))
        if len(clocks) > 1:
            return "within_noise", "timed by different clocks: not comparable", None
        if min(len(old), len(new)) < LEAST_BLOCKS:
            return "within_noise", f"fewer than {LEAST_BLOCKS} blocks: no interval", None
        low, high = ratio_interval(new, old)
        allowed = self.between_processes()
        basis = f"95 % interval over blocks, and {allowed * 100:.0f} % that processes differ by"
        if low > 1 + allowed or high < 1 / (1 + allowed):
            return towards(kind, low - 1), basis, (low, high)
        return "within_noise", basis, (low, high)

    def _noise(self, unit: str, noise: float) -> float:
        if unit in ONCE:
            return self.unrest(noise)
        counts = (side.diagnosis.counts.get("compiled") for side in (self.before, self.after))
        sources = {found.peak_source for found in counts if found}
        return max(noise, OF_PROCESS) if unit == "bytes" and sources != {"allocator"} else noise

    def between_processes(self) -> float:
        """The part by which the same compiled step differs from process to process."""
        return max(_between_processes(side) for side in (self.before, self.after))

    def unrest(self, least: float) -> float:
        """``least``, or more if the machine's own speed varied by more during either run."""
        return max(least, *(_unrest(side) for side in (self.before, self.after)))


def beyond(before: float, after: float, noise: float, least: float) -> bool:
    """Whether two figures differ by more than the part ``noise`` and by at least ``least``."""
    low, high = sorted((before, after))
    return high - low >= least and high > low * (1 + noise)


def towards(kind: Kind, difference: float) -> FigureChange:
    """Better, worse, or (where no way is the better one) changed."""
    if kind.better is None:
        return "changed"
    return "better" if (difference > 0) == (kind.better == "higher") else "worse"


def blocks(side: Side, name: str) -> list[float]:
    """The figure in each block pair that counts."""
    values = (number(row, name) for row in side.diagnosis.pairs if row.get("used") is True)
    return [value for value in values if value is not None and value > 0]


def _between_processes(side: Side) -> float:
    verdict, counts = side.diagnosis.verdict, side.diagnosis.counts.get("compiled")
    busy, step = (counts.device_busy_ms, counts.step_ms) if counts else (None, None)
    if verdict.clock == "device" and busy and step and busy >= PACED * step:
        return BY_DEVICE
    return BY_HOST if (verdict.compiled_ms or 0.0) >= SHORT_MS else BY_HOST_SHORT


def _unrest(side: Side) -> float:
    """By how much a step's time varied from block to block, the extreme tenths apart."""
    return max(_spread(blocks(side, name)) for name in ("eager_ms", "compiled_ms"))


def _spread(values: list[float]) -> float:
    times = sorted(values)
    if len(times) < LEAST_BLOCKS:
        return 0.0
    low, high = times[len(times) // 10], times[-1 - len(times) // 10]
    return (high - low) / median(times)

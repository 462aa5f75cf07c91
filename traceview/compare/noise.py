"""Is a difference between two runs more than noise? If that is not certain, no change is claimed.

Timed steps: the ratio of the two medians with its 95 % bootstrap interval over the runs' own
blocks, widened by how much the same script varies between processes (docs/measurements.md).
Compile seconds are measured once: they must differ by more than a quarter, and by more than either
machine's speed varied while its blocks were timed. Counts are exact.
"""

from __future__ import annotations

from functools import cached_property
from statistics import median

import msgspec

from traceview.compare.figures import Interval, Kind, Measured
from traceview.compare.model import FigureChange, FigurePair
from traceview.compare.side import Side, value_text
from traceview.derive.bootstrap import ratio_interval
from traceview.words import names

#: How much the same step varies between processes: device-bound, host-bound, and host-bound with a
#: short step.
BY_DEVICE, BY_HOST, BY_HOST_SHORT = 0.05, 0.1, 0.2
SHORT_MS = 1.0
#: A step is device-bound if the device is busy for this fraction of it.
PACED = 0.9
#: With fewer blocks there is no meaningful interval.
LEAST_BLOCKS = 3
#: Figures that each block pair has.
IN_BLOCKS = ("speedup", "compiled_ms", "eager_ms")
#: How much the peak memory of a whole process varies.
OF_PROCESS = 0.1
ONCE = ("s", "ms")
#: Facts that differ between machines of different speed.
MACHINE = ("device_name", "device_capability", "cpu_name", "cpu_threads")


class Sides(msgspec.Struct, frozen=True, dict=True):
    """Both runs, and by how much their figures may differ although nothing has changed."""

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
        noise = kind.noise
        if kind.unit in ONCE and (machines := self.other_machine):
            return "within_noise", f"not compared: {machines}", None
        if kind.unit in ONCE:
            noise = self.unrest(noise)
        elif kind.unit == "bytes":
            counts = (side.diagnosis.counts.get("compiled") for side in (self.before, self.after))
            whole_process = {found.peak_source for found in counts if found} != {"allocator"}
            noise = max(noise, OF_PROCESS) if whole_process else noise
        if not beyond(old.value, new.value, noise, kind.least):
            return "within_noise", f"two equal runs may differ by {noise * 100:.0f} %", None
        basis = "counted" if not noise else f"differs by more than {noise * 100:.0f} %"
        return towards(kind, new.value - old.value), basis, None

    def _timed(self, kind: Kind) -> tuple[FigureChange, str, Interval | None]:
        clocks = {side.diagnosis.verdict.clock for side in (self.before, self.after)}
        old, new = (blocks(side, kind.key) for side in (self.before, self.after))
        if len(clocks) > 1:
            return "within_noise", "timed by different clocks: not comparable", None
        if min(len(old), len(new)) < LEAST_BLOCKS:
            return "within_noise", f"fewer than {LEAST_BLOCKS} blocks: no interval", None
        low, high = ratio_interval(new, old)
        allowed = self.between_processes()
        basis = f"95 % interval over blocks, plus {allowed * 100:.0f} % between processes"
        if low > 1 + allowed or high < 1 / (1 + allowed):
            return towards(kind, low - 1), basis, (low, high)
        return "within_noise", basis, (low, high)

    def between_processes(self) -> float:
        """How much the same compiled step varies between processes, as a fraction."""
        allowed = []
        for side in (self.before, self.after):
            verdict, counts = side.diagnosis.verdict, side.diagnosis.counts.get("compiled")
            busy, step = (counts.device_busy_ms, counts.step_ms) if counts else (None, None)
            if verdict.clock == "device" and busy and step and busy >= PACED * step:
                allowed.append(BY_DEVICE)
            else:
                short = (verdict.compiled_ms or 0.0) < SHORT_MS
                allowed.append(BY_HOST_SHORT if short else BY_HOST)
        return max(allowed)

    @cached_property
    def other_machine(self) -> str | None:
        """What shows that the runs were made on different machines; None if nothing does."""
        for name in MACHINE:
            old, new = (
                value_text(side.diagnosis.environment.get(name))
                for side in (self.before, self.after)
            )
            if old is not None and new is not None and old != new:
                return f"The {names.word(names.FACTS, name)} differs: {old} in A, {new} in B"
        return None

    def unrest(self, least: float) -> float:
        """``least``, or more if the machine's own speed varied by more during either run.

        That is how much a step's time varied between blocks, 10th to 90th percentile.
        """
        most = least
        for side in (self.before, self.after):
            for name in ("eager_ms", "compiled_ms"):
                times = sorted(blocks(side, name))
                if len(times) >= LEAST_BLOCKS:
                    low, high = times[len(times) // 10], times[-1 - len(times) // 10]
                    most = max(most, (high - low) / median(times))
        return most


def beyond(before: float, after: float, noise: float, least: float) -> bool:
    """Whether two figures differ by more than the fraction ``noise`` and by at least ``least``."""
    low, high = sorted((before, after))
    return high - low >= least and high > low * (1 + noise)


def towards(kind: Kind, difference: float) -> FigureChange:
    """Better, worse, or (where neither direction is better) changed."""
    if kind.better is None:
        return "changed"
    return "better" if (difference > 0) == (kind.better == "higher") else "worse"


def blocks(side: Side, name: str) -> list[float]:
    """The figure in each block pair that counts."""
    values = (getattr(row, name) for row in side.pairs)
    return [value for value in values if value is not None and value > 0]

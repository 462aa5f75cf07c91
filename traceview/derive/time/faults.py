"""Memory pages that only profiled steps touch for the first time, and what they take.

The profiler's own blocks split what freed tensors leave (glibc's allocator), and tensors move to
memory that was never touched before: the same step waits for the operating system at pages at which
it otherwise does not. How many a step has more in the window than in the timed blocks is counted,
what one takes is measured in the run (``page_fault`` among the ceilings).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl

from traceview.derive.limits.ceilings import ceilings_of
from traceview.derive.windows import Window
from traceview.tables import Tables


class Faults(NamedTuple):
    """Minor faults a step in the timed blocks and in the window; None where they were not counted.

    ``cost_us``: what one takes, None where that was not measured.
    """

    timed: float | None
    profiled: float | None
    cost_us: float | None

    def profilers_ms(self, events: float) -> float:
        """Milliseconds a step that the profiler's faults take; ``events`` were recorded a step.

        An event's record lies in less than a page of the profiler's own: so many faults are that,
        which happen around events and count as their cost.
        """
        if self.timed is None or self.profiled is None or self.cost_us is None:
            return 0.0
        return max(0.0, self.profiled - self.timed - events) * self.cost_us / 1e3

    @property
    def counts(self) -> dict[str, Any]:
        """Columns of ``step_counts``."""
        return {"page_faults": self.timed, "profiled_page_faults": self.profiled}


def faults_of(tables: Tables, window: Window) -> Faults:
    """The faults of a window's steps and of the timed blocks of its stance."""
    share = pl.col("page_faults") / pl.col("steps")
    blocks = window.own(tables["blocks"]).select(share)
    times = window.own(tables["profile_windows"]).filter(purpose="time").select(share)
    cost = ceilings_of(tables, window.pass_name, window.rank, "cpu").fault_us
    timed = blocks["page_faults"].median()
    profiled = next(reversed(times["page_faults"].drop_nulls().to_list()), None)
    return Faults(timed if isinstance(timed, float) else None, profiled, cost)

"""One part of an effect, and the effects in the order in which a waterfall shows them."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from traceview.derive import causes

FUSION = "fusion"
PAGE_FAULTS = "page_faults"
CASTS = "casts_saved"
LIBRARY = "library_choice"
LESS_WORK = "less_work"
RECOMPUTE = "recompute"
LAUNCHES = "launches_saved"
CUDAGRAPHS = "cudagraphs"
COPIES = "copies_added"
OVERHEADS = "overheads_added"
OTHER_KERNELS = "other_kernels"
OTHER_IDLE = "other_idle"
UNEXPLAINED = causes.UNEXPLAINED

ORDER = (
    *(FUSION, PAGE_FAULTS, CASTS, LIBRARY, LESS_WORK, RECOMPUTE, LAUNCHES, CUDAGRAPHS, COPIES),
    *(OVERHEADS, OTHER_KERNELS, OTHER_IDLE, UNEXPLAINED),
)


#: Milliseconds in eager and in the compiled step; None where that side has no such thing.
Times = tuple[float | None, float | None]


class Part(msgspec.Struct, frozen=True):
    """A stretch of the way from the eager step to the compiled one; ``ms`` is compiled less eager.

    ``eager_ms`` and ``compiled_ms`` are None where that side has no such thing or where only the
    difference is known. ``derived``: it rests on a join or a count, not on clocks alone.
    """

    effect: str
    what: str
    ms: float
    eager_ms: float | None
    compiled_ms: float | None
    clock: str
    derived: bool
    group_id: int | None = None
    file: str | None = None
    line: int | None = None

    @classmethod
    def of(cls, effect: str, what: str, times: Times, clock: str, *, derived: bool) -> Part:
        """A part of which ``times`` (eager, compiled) are known; None takes no time."""
        return cls(effect, what, 0.0, None, None, clock, derived).timed(*times)

    def timed(self, eager_ms: float | None, compiled_ms: float | None) -> Part:
        """The same with other times."""
        ms = (compiled_ms or 0.0) - (eager_ms or 0.0)
        return replace(self, ms=ms, eager_ms=eager_ms, compiled_ms=compiled_ms)

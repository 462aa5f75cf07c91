"""One part of an effect, and the effects in the order in which a waterfall shows them."""

from __future__ import annotations

import msgspec

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
MACHINE_SPEED = causes.SPEED
UNEXPLAINED = causes.UNEXPLAINED

ORDER = (
    *(FUSION, PAGE_FAULTS, CASTS, LIBRARY, LESS_WORK, RECOMPUTE, LAUNCHES, CUDAGRAPHS, COPIES),
    *(OVERHEADS, OTHER_KERNELS, OTHER_IDLE, MACHINE_SPEED, UNEXPLAINED),
)


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


def difference(eager_ms: float | None, compiled_ms: float | None) -> float:
    """Compiled less eager; a side without such a thing takes no time for it."""
    return (compiled_ms or 0.0) - (eager_ms or 0.0)

"""Whether the profiled steps of a stance are of the same kind as those that were timed."""

from __future__ import annotations


def far_longer(
    unexplained_ms: float | None, timed_ms: float | None, beside_ms: float | None
) -> bool:
    """Whether the profiled step, less all that the profiler can have cost, takes twice as long.

    Such a window shows other steps than the blocks, and tells nothing of those. A script that
    ended before its last window was done, say, leaves only the first one, in which cudagraphs were
    still being recorded.
    """
    if unexplained_ms is None or timed_ms is None:
        return False
    return -unexplained_ms > max(timed_ms, beside_ms or 0.0)

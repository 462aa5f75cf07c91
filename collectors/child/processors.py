"""The processors that the script may use, and how long a thread had to wait for one."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import NamedTuple

_CGROUP = Path("/sys/fs/cgroup")
_SCHEDSTAT = "/proc/thread-self/schedstat"


class ThreadTime(NamedTuple):
    """What the calling thread has had so far, ms; ``queued`` None where Linux does not tell."""

    running: float
    queued: float | None

    def since(self, earlier: ThreadTime) -> ThreadTime:
        both = self.queued is not None and earlier.queued is not None
        queued = self.queued - earlier.queued if both else None  # type: ignore[operator]
        return ThreadTime(self.running - earlier.running, queued)


def thread_time() -> ThreadTime:
    """Time on a processor, and time ready to run without one (proc(5), schedstat)."""
    running = time.thread_time_ns() / 1e6
    try:
        with open(_SCHEDSTAT, encoding="ascii") as file:  # noqa: PTH123 - half the time of Path
            return ThreadTime(running, int(file.read().split()[1]) / 1e6)
    except (OSError, ValueError, IndexError):
        return ThreadTime(running, None)


def usable() -> int | None:
    """Processors that this process may run on; fewer where its cgroup's quota is lower."""
    try:
        count = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count()
    quota = _quota()
    return count if quota is None else max(1, min(count, math.ceil(quota)))


def _quota() -> float | None:
    """Processors' worth of time that the cgroup grants (version 2, then 1); None: no limit."""
    try:
        if (version_2 := _CGROUP / "cpu.max").exists():
            limit, period = version_2.read_text(encoding="ascii").split()
        else:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            limit, period = (
                (_CGROUP / "cpu" / name).read_text(encoding="ascii").strip() for name in names
            )
        return None if limit in ("max", "-1") else int(limit) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None

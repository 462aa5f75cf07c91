"""What a command and its children take: time, processors' time, memory held at once. Linux."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

LOOK_EVERY_S = 0.01


class Measured(NamedTuple):
    """From start to exit: seconds, those of all processors, most bytes resident at once."""

    wall_s: float
    cpu_s: float
    most_bytes: int


def measured(
    command: list[str],
    log: Path | None = None,
    environment: dict[str, str] | None = None,
    good: Collection[int] = (0,),
) -> Measured:
    """Run ``command``, its words to ``log``. Exits unless it ends with one of ``good``."""
    with Path(log or "/dev/null").open("wb") as out:
        began, before, most = time.perf_counter(), _cpu_s(), 0
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
        while process.poll() is None:
            most = max(most, sum(_resident(pid) for pid in _tree(process.pid)))
            time.sleep(LOOK_EVERY_S)
        taken = Measured(time.perf_counter() - began, _cpu_s() - before, most)
    if process.returncode not in good:
        see = f"; see {log}" if log else ""
        sys.exit(f"{' '.join(command[:3])} ended with {process.returncode}{see}")
    return taken


def _cpu_s() -> float:
    """Of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _tree(pid: int) -> Iterator[int]:
    """A process and its children, whichever thread started them."""
    yield pid
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))
    except OSError:
        return


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0

"""Memory: peaks of a block (the CUDA caching allocator's, or the process's own), page faults."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

from .recorder import Recorder

#: What the machine has; `proc_bytes` reads it.
MEMINFO = Path("/proc/meminfo")
_CLEAR = Path("/proc/self/clear_refs")
#: What this process has.
STATUS = Path("/proc/self/status")


class Memory:
    """Read at block edges only. Bytes. ``peaks``: the largest of a block so far, by stance.

    ``ours`` is what traceview's own copies take of the device's memory: no part of any peak.
    """

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._torch = torch
        self._recorder = recorder
        self._start: int | None = None
        self._resettable = True
        self.device = False
        self.ours = 0
        self.peaks: dict[str, int] = {}

    def open(self) -> None:
        """Begin a new peak."""
        if self.device:
            self._torch.cuda.reset_peak_memory_stats()
            self._start = self._torch.cuda.memory_allocated() - self.ours
        elif self._resettable:
            try:
                fd = os.open(_CLEAR, os.O_WRONLY)
                try:
                    os.write(fd, b"5")  # the peak is the present resident set (proc(5), clear_refs)
                finally:
                    os.close(fd)
            except OSError:
                self._resettable = False
            self._start = proc_bytes(STATUS, "VmRSS")

    def close(self, stance: str, block_index: int) -> None:
        """Write the peak since ``open``; nothing where peaks can't be reset."""
        if self.device:
            cuda = self._torch.cuda
            device, source = f"cuda:{cuda.current_device()}", "allocator"
            peak: int | None = cuda.max_memory_allocated() - self.ours
            reserved: int | None = cuda.max_memory_reserved()
        elif self._resettable:
            device, source, peak, reserved = "cpu", "process", proc_bytes(STATUS, "VmHWM"), None
        else:
            return
        self.peaks[stance] = max(peak or 0, self.peaks.get(stance, 0))
        self._recorder.write(
            "memory",
            stance=stance,
            device=device,
            source=source,
            block_index=block_index,
            peak_bytes=peak,
            peak_reserved_bytes=reserved,
            start_bytes=self._start,
        )


def page_faults() -> int:
    """Pages that the process has touched for the first time (getrusage(2), ru_minflt)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def proc_bytes(file: Path, name: str) -> int | None:
    """A kB field of a file in /proc, in bytes; None if it is not known."""
    try:
        for line in file.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None

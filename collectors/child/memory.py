"""Memory: peaks of a block (the CUDA caching allocator's, or the process's own), page faults."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
from contextlib import suppress
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

    ``ours`` is what traceview's own copies take of the device's memory, ``kept`` what a profiler
    has kept of the process's: no part of any peak.
    """

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._torch = torch
        self._recorder = recorder
        self._start: int | None = None
        self._resettable = True
        self.device = False
        self.ours = self.kept = 0
        self._before_window: int | None = None
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
            self._start = self._resident()

    def window_opens(self) -> None:
        """A profiler begins; what the process has more when it has ended is the profiler's."""
        self._before_window = None if self.device else self._resident()

    def window_closed(self) -> None:
        """It has ended."""
        before, now = self._before_window, self._resident()
        if before is not None and now is not None:
            self.kept += max(0, now - before)
        self._before_window = None

    def _resident(self, name: str = "VmRSS") -> int | None:
        found = proc_bytes(STATUS, name)
        return None if found is None else found - self.kept

    def close(self, stance: str, block_index: int) -> None:
        """Write the peak since ``open``; nothing where peaks can't be reset."""
        if self.device:
            cuda = self._torch.cuda
            device, source = f"cuda:{cuda.current_device()}", "allocator"
            peak: int | None = cuda.max_memory_allocated() - self.ours
            reserved: int | None = cuda.max_memory_reserved()
        elif self._resettable:
            device, source, peak, reserved = "cpu", "process", self._resident("VmHWM"), None
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


class Reserve:
    """Memory of the C library's heap that has been touched, for as long as a profiler runs.

    What the profiler keeps splits the pieces of the heap that a step frees and takes again. Its
    tensors then move to the heap's end, which goes back to the system as soon as it is free: pages
    fault in every step, and do not without a profiler. These pieces lie where tensors move to. All
    are freed but the last one, which keeps the end from going back.
    """

    _PIECE = 1 << 16  # below the size from which on malloc asks the system for each
    _MOST = 1 << 29

    def __init__(self) -> None:
        self._last: int | None = None
        self._c: Any = None
        with suppress(OSError, AttributeError, TypeError):
            self._c = ctypes.CDLL(None)
            self._c.malloc.restype, self._c.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
            self._c.free.restype, self._c.free.argtypes = None, [ctypes.c_void_p]

    def take(self) -> None:
        """Nothing where memory is short."""
        available = proc_bytes(MEMINFO, "MemAvailable") or 0
        size = min(self._MOST, available // 16)
        if self._c is None or self._last is not None or not size:
            return
        pieces = [self._c.malloc(self._PIECE) for _ in range(size // self._PIECE)]
        pieces = [piece for piece in pieces if piece]
        for piece in pieces:
            ctypes.memset(piece, 0, self._PIECE)
        if pieces:
            self._last = max(pieces)
            pieces.remove(self._last)
        for piece in pieces:
            self._c.free(piece)

    def give_back(self) -> None:
        """All of it; what is in use after these pieces would else keep them resident."""
        last, self._last = self._last, None
        if last is not None:
            self._c.free(last)
            with suppress(AttributeError):
                self._c.malloc_trim(0)


class Pile:
    """Memory that piles up while torch's profiler runs, and stays until its objects are collected.

    With ``record_shapes`` it keeps weak references to all operands. Those of functorch's wrappers
    (``vmap``, ``grad``) hold what they wrap: tensors of a few steps can fill a device, and would
    count in the peaks of the blocks after them.
    """

    _MOST = 0.25  # of what was free: a window that has more ends, twice as late at worst

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda
        self._before = 0
        self._free = 0.0
        self._device = False

    def begin(self, *, device: bool) -> None:
        """A window opens."""
        self._device = device
        self._before = self._used()
        if device:
            free, _whole = self._cuda.mem_get_info()
            self._free = float(free + self._cuda.memory_reserved() - self._before)
        else:
            self._free = float(proc_bytes(MEMINFO, "MemAvailable") or 0)

    def most_steps(self, steps: int) -> float:
        """How many may be profiled at once, by what ``steps`` of them have left."""
        return self._MOST * self._free * steps / max(1, self._used() - self._before)

    def clear(self) -> None:
        """The profiler is gone; of a process it has taken some memory by itself."""
        grown = self._used() - self._before
        if grown > (0 if self._device else self._MOST * self._free):
            gc.collect()

    def _used(self) -> int:
        if self._device:
            return int(self._cuda.memory_allocated())
        return proc_bytes(STATUS, "VmRSS") or 0


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

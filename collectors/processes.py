"""The tree of processes that a pass started: found, counted dead by the kernel, ended.

Linux: from /proc. Where there is none, only the process that we started is known.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


def tree(root: int | None, marker: str) -> list[int]:
    """Processes below ``root`` (without it), and those that carry ``marker`` in their environment.

    A worker whose parent died belongs to init by then: its environment still tells whose it was.
    ``marker`` is one ``NAME=VALUE``; ``root`` is None once it has been waited for.
    """
    parents: dict[int, int] = {}
    marked: set[int] = set()
    for entry in _entries():
        pid = int(entry.name)
        try:
            stat = (entry / "stat").read_bytes()
            # The command's name stands in brackets and may hold brackets and blanks itself.
            parents[pid] = int(stat[stat.rindex(b")") + 2 :].split()[1])
            if marker.encode() in (entry / "environ").read_bytes().split(b"\0"):
                marked.add(pid)
        except (OSError, ValueError):
            continue  # it ended meanwhile, or is not ours to read
    found = marked if root is None else _below(root, parents) | marked
    return sorted(found - {root, os.getpid()})


def kill_tree(root: int | None, marker: str) -> None:
    """SIGKILL for the process, everything below it and everything marked."""
    for pid in [*tree(root, marker), *([] if root is None else [root])]:
        send(pid, signal.SIGKILL)


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def out_of_memory_kills() -> int | None:
    """Kills by the kernel for want of memory in our control group; None if not known."""
    try:
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for group in groups:
        _, controllers, inside = group.split(":", 2)
        if controllers == "":  # version 2
            kills = _oom_kills(Path(_CGROUPS, inside.lstrip("/"), "memory.events"))
        elif "memory" in controllers.split(","):
            kills = _oom_kills(Path(_CGROUPS, "memory", inside.lstrip("/"), "memory.oom_control"))
        else:
            continue
        if kills is not None:
            return kills
    return None


def _oom_kills(counts: Path) -> int | None:
    try:
        named = dict(line.split() for line in counts.read_text(encoding="utf-8").splitlines())
        return int(named["oom_kill"])
    except (OSError, KeyError, ValueError):
        return None


def _entries() -> list[Path]:
    try:
        return [entry for entry in _PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _below(root: int, parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    layer = {root}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer} - found
        found |= layer
    return found

"""Where every log's rows belong: the pass and the rank of each process in it."""

from __future__ import annotations

from collections.abc import Sequence

from traceview.reading.jobs import Process, Start, nearness, starts_of
from traceview.reading.parts import Home, Part, Seen
from traceview.reading.processes import least, most

#: Logs that tell of a process's life with ids and times; the earlier kind is believed first.
_LIVES = ("structured", "events")
_TEXTS = ("textlog", "stderr")
#: What a text log repeats of the structured log of the same process.
_REPEATED = {
    "graph_breaks": "graph_breaks",
    "recompiles": "recompiles",
    "generated_kernels": "generated_kernels",
    "graphs": "output_code",
}


class Places:
    """All processes and starts of a pile of logs, and the home of each process of each log."""

    def __init__(self, found: Sequence[Part]) -> None:
        self._of_pid: dict[int | None, list[Process]] = {}
        self._told: dict[int, set[str]] = {}
        self._of: dict[int, Process | None] = {}
        # Logs of lives first, then by name: the same logs always give the same result.
        order = {kind: number for number, kind in enumerate(_LIVES)}
        for part in sorted(found, key=lambda p: (order.get(p.kind, len(order)), p.name, p.part)):
            for seen in part.processes:
                self._of[id(seen)] = self._process(part, seen)
        self.starts = starts_of(self._all())
        self._start = {id(p): start for start in self.starts for p in start.members}

    def homes(self, part: Part) -> list[Home]:
        """The home of each process of ``part``, in its own order."""
        return [self._home(part, seen) for seen in part.processes]

    def _home(self, part: Part, seen: Seen) -> Home:
        process = self._of[id(seen)]
        if process is None:
            return Home(seen.pid, seen.rank, self._nearest(part.folder).pass_name, seen.rank)
        home = Home(seen.pid, seen.rank, self._start[id(process)].pass_name, process.rank)
        if part.kind in _TEXTS and process.log is not None:
            told = self._told[id(process)]
            home.log = process.log
            home.told = sorted(table for table, known in _REPEATED.items() if known in told)
        return home

    def _process(self, part: Part, seen: Seen) -> Process | None:
        """The process that ``seen`` is of: a known one, or for logs of lives a new one."""
        known = self._known(part, seen)
        if known is None and (part.kind not in _LIVES or seen.pid is None):
            return None
        if known is None:
            known = Process(seen.pid, seen.rank, part.folder, seen.host)
            self._of_pid.setdefault(seen.pid, []).append(known)
        if known.rank is None:
            known.rank = seen.rank
        known.host = known.host or seen.host
        known.records += seen.records
        known.scripts |= seen.scripts
        known.began_us = least(known.began_us, seen.began_us)
        known.ended_us = most(known.ended_us, seen.ended_us)
        if part.kind == "structured":
            known.log = part.part
            self._told[id(known)] = seen.tables
        return known

    def _known(self, part: Part, seen: Seen) -> Process | None:
        """The likeliest of the known processes that ``seen`` may be."""
        fitting: list[Process] = []
        for process in self._of_pid.get(seen.pid, []) if seen.pid is not None else self._all():
            if part.kind == "structured" and process.log is not None:
                continue  # torch opens one log a process
            if None not in (process.rank, seen.rank) and process.rank != seen.rank:
                continue
            if process.host and seen.host and process.host != seen.host:
                continue
            if seen.pid is None:
                elsewhere = seen.rank is None and process.folder != part.folder
                if elsewhere or (seen.rank is not None and process.rank is None):
                    continue
            if process.overlaps(seen.began_us, seen.ended_us):
                fitting.append(process)
        if seen.pid is None and seen.rank is None and len(fitting) > 1:
            return None

        def likeness(process: Process) -> tuple[bool, int, int]:
            same_rank = seen.rank is not None and process.rank == seen.rank
            return same_rank, nearness(process.folder, part.folder), process.records

        return max(fitting, key=likeness, default=None)

    def _all(self) -> list[Process]:
        return [process for same in self._of_pid.values() for process in same]

    def _nearest(self, folder: str) -> Start:
        if not self.starts:
            return Start()
        return max(
            self.starts,
            key=lambda s: (max(nearness(folder, f) for f in s.folders), s.pass_name == "logs"),
        )

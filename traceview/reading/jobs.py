"""Which processes belong together, and where every log's rows belong: the pass and the rank.

The rules, in the order in which they are applied. A *start* is one launch of all ranks.

1. A process is a pid in a structured log, or in our collector's events. Two logs tell of the same
   process if the pid is the same and neither rank, host nor time speaks against it; of several
   such processes, the one whose folder is nearest. Pids alone prove nothing: in containers every
   host has the same ones.
2. A rank is believed from records first (the last one: torch knows it late), then from the file's
   name, then from another log of the same process.
3. Within a folder, processes are of one start if each rank comes once. The same rank again is
   another start, unless it is a helper: alive only while the first one is, with a quarter of its
   records at most. Processes without a rank are of one start if they overlap in time.
4. Starts of different folders are one start if they overlap in time, no rank comes twice, and, for
   those without ranks, the folders' names differ in digits only (pod-0, pod-1). The nearest
   folder is asked first.
5. Starts are attempts of one job if they share a folder (``attempt_0`` and ``attempt_1`` are the
   same folder here), do not overlap in time and compiled code of a common file of the user's. All
   others are different jobs: two that ran at once in one folder too.
6. A log without times (text) goes where its process is; else to the start of the nearest folder.

What differs between ranks of one start (versions, settings) keeps nothing apart: that it differs
is what the report has to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import attrgetter

import msgspec

from traceview.reading.parts import Home, Part, Seen
from traceview.reading.processes import least, most
from traceview.tables import grouped

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
_DIGITS = re.compile(r"\d+")
_ATTEMPT = re.compile(r"(?:attempt|restart|try|retry)[_\-]?\d+", re.IGNORECASE)
_HELPER_SHARE = 4
#: Ranks that start this much after all others have gone quiet are still of their start.
_LATE_US = 30 * 60e6


class Process(msgspec.Struct, eq=False):
    """One process, whatever logs tell of it."""

    pid: int | None
    rank: int | None
    folder: str
    host: str | None = None
    began_us: float | None = None
    ended_us: float | None = None
    records: int = 0
    log: str | None = None
    scripts: set[str] = set()

    def overlaps(self, began_us: float | None, ended_us: float | None) -> bool:
        """Whether it lived in that time, as far as both are known."""
        if self.began_us is None or began_us is None:
            return True
        ended = ended_us if ended_us is not None else began_us
        return began_us <= (self.ended_us or self.began_us) and self.began_us <= ended


class Start(msgspec.Struct, eq=False):
    """Processes that were started together."""

    members: list[Process] = []
    folders: set[str] = set()
    ranks: dict[int, Process] = {}
    began_us: float | None = None
    ended_us: float | None = None
    job: int = 0
    attempt: int = 0
    pass_name: str = "logs"

    def take(self, processes: Iterable[Process]) -> None:
        """Add ``processes``."""
        for process in processes:
            self.members.append(process)
            self.folders.add(process.folder)
            if process.rank is not None:
                self.ranks.setdefault(process.rank, process)
            for moment in (process.began_us, process.ended_us):
                if moment is not None:
                    self.began_us = min(moment, self.began_us or moment)
                    self.ended_us = max(moment, self.ended_us or moment)

    def overlaps(self, other: Process | Start, slack_us: float = 0.0) -> bool:
        """Whether both lived at one time, as far as that is known."""
        if None in (self.began_us, other.began_us, self.ended_us, other.ended_us):
            return True
        return (
            other.began_us <= self.ended_us + slack_us  # type: ignore[operator]
            and self.began_us <= other.ended_us + slack_us  # type: ignore[operator]
        )

    def admits(self, process: Process) -> bool:
        """Rule 3: whether a process of the same folder is of this start."""
        first = None if process.rank is None else self.ranks.get(process.rank)
        if first is None:
            ranked = process.rank is not None and self.ranks
            return self.overlaps(process, _LATE_US if ranked else 0.0)
        times = (first.began_us, process.began_us, process.ended_us, first.ended_us)
        known = [moment for moment in times if moment is not None]
        inside = len(known) == len(times) and known == sorted(known)
        return inside and process.records * _HELPER_SHARE <= first.records

    def is_one_with(self, other: Start) -> bool:
        """Rule 4: whether a start of other folders is this one."""
        if self.folders & other.folders or not self.overlaps(other):
            return False
        if self.ranks and other.ranks:
            return self.ranks.keys().isdisjoint(other.ranks)
        mine, others = ({_DIGITS.sub("#", f) for f in s.folders} for s in (self, other))
        return not mine.isdisjoint(others)

    def is_restarted_as(self, other: Start) -> bool:
        """Rule 5: whether ``other`` may be the next attempt of the same job."""
        scripts, others = self.scripts, other.scripts
        if (scripts and others and scripts.isdisjoint(others)) or self.overlaps(other):
            return False
        mine, theirs = ({_ATTEMPT.sub("", f) for f in s.folders} for s in (self, other))
        return not mine.isdisjoint(theirs)

    @property
    def scripts(self) -> set[str]:
        """The user's files that it compiled code of."""
        return {script for member in self.members for script in member.scripts}

    @property
    def records(self) -> int:
        return sum(member.records for member in self.members)


def starts_of(processes: Sequence[Process]) -> list[Start]:
    """Every start, with its job, attempt and pass; the one that matters most is pass ``logs``."""
    by_folder = grouped(sorted(processes, key=_when), by=attrgetter("folder"))
    apart: list[Start] = []
    for members in by_folder.values():
        here: list[Start] = []
        for process in members:
            admitting = [start for start in here if start.admits(process)]
            if not admitting:
                here.append(Start())
            (admitting or here)[-1].take([process])
        apart += here
    starts: list[Start] = []
    for start in sorted(apart, key=_when):
        folder = next(iter(start.folders))
        fitting = [other for other in starts if other.is_one_with(start)]
        if fitting:
            nearest = max(fitting, key=lambda s: nearness(next(iter(s.folders)), folder))
            nearest.take(start.members)
        else:
            starts.append(start)
    ordered = sorted(starts, key=_when)
    chief = max(ordered, key=lambda start: (len(start.ranks), start.records), default=None)
    numbers = iter(range(2, len(starts) + 1))
    jobs: list[list[Start]] = []
    for start in ordered:
        start.pass_name = "logs" if start is chief else f"logs.{next(numbers)}"
        job = next((job for job in jobs if job[-1].is_restarted_as(start)), [])
        if not job:
            jobs.append(job)
        job.append(start)
        start.job, start.attempt = jobs.index(job) + 1, len(job)
    return starts


def nearness(one: str, other: str) -> int:
    """How many folders two paths have in common, from the top."""
    common = 0
    for left, right in zip(one.split("/"), other.split("/"), strict=False):
        if left != right:
            break
        common += 1
    return common


def _when(of: Process | Start) -> float:
    return of.began_us if of.began_us is not None else float("inf")


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

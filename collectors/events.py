"""The child's events, read as written: for the status line, ``--live``, the choice of passes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from traceview.collectors.child.pairs import Block, Pair, interval, paired
from traceview.collectors.compiling import CompileTail, Compiling
from traceview.words import numbers as fmt

_AT_ONCE = 1 << 20
_SILENT_S = 3.0  # a phase that lasts no longer shows no seconds
_WORDS = {
    "cold": "cold compile",
    "warmup": "warm-up",
    "block": "paired block",
    "profile": "profiling",
    "trial": "trying",
    "serving": "serving call",
    "between": "waiting for the next compiled callable",
    "tail": "running to the end",
    "ceilings": "measuring device limits",
    "comparing": "comparing outputs",
    "replay": "replaying calls",
    "training": "training,",
}


@dataclass(slots=True)
class Pace:
    """How far the paired blocks are, of a trial if it is one: seconds, pairs done and to do."""

    trial: str = ""
    number: int = 0
    of: int = 0
    done: int = 0
    spent_s: float = 0.0

    def left_s(self, elapsed_s: float) -> float | None:
        """Seconds until the last pair, ``elapsed_s`` into the present one; None until one is done.

        Profiling between the pairs is not among them.
        """
        if self.done < 1:
            return None
        return max(0.0, self.spent_s / self.done * (self.of - self.number + 1) - elapsed_s)


@dataclass(slots=True)
class Story:
    """What the events reported so far. ``crash_stance``: where an exception reached the top,
    of ``crash_type``.

    ``compiling`` is what torch compiles now, and ``recompiled`` its last recompile; ``news`` are
    the lines of ``--live`` that were not taken yet.
    """

    phase: str | None = None
    stance: str | None = None
    detail: str | None = None
    last_step: int | None = None
    called: bool = False
    disabled: bool = False
    stances_measured: set[str] = field(default_factory=set)
    stopping: bool = False
    crashed: bool = False
    crash_stance: str | None = None
    crash_type: str | None = None
    since_us: float | None = None
    timed_in: str = ""
    replayed: bool = False
    timed: object = None
    pace: Pace = field(default_factory=Pace)
    halves: dict[int, dict[str, Block]] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    compiling: Compiling | None = None
    recompiled: Compiling | None = None
    news: list[dict[str, Any]] = field(default_factory=list)

    def progress(self, now_us: float, began_us: float) -> str | None:
        """The status line: phase, compile, pairs done, speedup so far, time left; None at first.

        Times are Unix times in µs; ``began_us`` is the child's start.
        """
        elapsed_s = (now_us - (self.since_us or now_us)) / 1e6
        latest = self.compiling or self.recompiled
        compiles = []
        if latest and (latest is self.compiling or now_us - latest.since_us < _SILENT_S * 1e6):
            compiles.append(latest.words(now_us))
        if self.words is None and compiles:
            return compiles[0]
        if self.words is None:
            waited_s = (now_us - began_us) / 1e6
            if waited_s < _SILENT_S:
                return None
            return f"waiting for the first compiled call, {waited_s:.0f} s"
        parts = [*([] if compiles and self.phase == "cold" else [self.words]), *compiles]
        if self.phase in ("block", "trial"):
            parts += [self.so_far] if self.so_far else []
            left_s = self.pace.left_s(elapsed_s)
            parts += [f"about {max(1.0, left_s):.0f} s left"] if left_s is not None else []
        elif elapsed_s >= _SILENT_S and not compiles:
            parts.append(f"{elapsed_s:.0f} s")
        return ", ".join(parts)

    @property
    def so_far(self) -> str | None:
        """``1.24–1.31× so far``: the interval; before six pairs the ratio alone."""
        ratio, found = self._speedup()
        if ratio is None:
            return None
        return f"{fmt.ratio(ratio) if found is None else fmt.ratio_interval(found)} so far"

    def _speedup(self) -> tuple[float | None, tuple[float, float] | None]:
        quiet = [pair for pair in self.pairs if not pair.compiles]
        return (median(pair.ratio for pair in quiet), interval(quiet)) if quiet else (None, None)

    @property
    def words(self) -> str | None:
        """The phase, in the words of the progress line."""
        if self.phase is None:
            return None
        if self.replayed:  # its phases are those of the script's steps
            return " ".join(filter(None, (_WORDS["replay"], self.detail)))
        return " ".join(filter(None, (_WORDS.get(self.phase, self.phase), self.detail)))

    def hear(self, event: dict[str, Any], process: str = "") -> None:
        """Take one event in; unknown ones and unknown keys are passed over.

        Blocks are compared within one ``process``: the first that timed one.
        """
        kind = event.get("event")
        self._step(event.get("step"))
        if kind == "phase":
            self._enter(event)
        elif kind in ("first_call", "calls"):
            self.called = True
        elif kind == "steps":
            rows = event.get("rows")
            if isinstance(rows, list) and rows and isinstance(rows[-1], list) and rows[-1]:
                self._step(rows[-1][0])
        elif kind == "block" and isinstance(event.get("stance"), str):
            self.stances_measured.add(event["stance"])
            self.timed_in = self.timed_in or process
            if process == self.timed_in:
                self._block(event)
        elif kind == "disabled":
            self.disabled = True
        elif kind == "done":
            self.stopping = self.stopping or event.get("stopping") is True
        elif kind == "error":
            self.crashed = True
            self.crash_stance = _text(event.get("stance"))
            self.crash_type = _text(event.get("type"))

    def _enter(self, event: dict[str, Any]) -> None:
        former, since_us, at_us = self.phase, self.since_us, _number(event.get("t"))
        self.phase, self.stance = _text(event.get("phase")), _text(event.get("stance"))
        self.detail, self.since_us = _text(event.get("detail")), at_us
        self.replayed = event.get("replayed") is True
        if self.phase is not None:
            keys = {"phase": self.phase, "detail": self.detail, "words": self.words}
            self.news.append({"event": "phase", "t": at_us, **keys, "stance": self.stance})
        trial, counted = "", self.detail or ""
        if self.phase == "trial":
            trial, _, counted = counted.rpartition(", pair ")
        first, _, last = counted.partition("/")
        number, of = (int(part[:9]) if part.isdecimal() else 0 for part in (first, last))
        if self.phase not in ("block", "trial") or not number:
            return
        if trial != self.pace.trial:
            former, self.pace = None, Pace(trial)
        pace = self.pace
        if former == self.phase and at_us is not None and since_us is not None:
            pace.spent_s += max(0.0, at_us - since_us) / 1e6
            pace.done += max(0, number - pace.number)
        pace.number, pace.of = number, of

    def _block(self, event: dict[str, Any]) -> None:
        if (timed := (event.get("anchor_region_id"), event.get("trial"))) != self.timed:
            self.timed, self.halves, self.pairs = timed, {}, []
        index, steps = event.get("pair_index"), event.get("steps")
        duration_ms = _number(event.get("duration_ms"))
        stance = event["stance"]
        if stance not in ("eager", "compiled", "trial") or not isinstance(index, int):
            return
        if isinstance(steps, int) and steps > 0 and duration_ms and duration_ms > 0:
            sides = self.halves.setdefault(index, {})
            sides[stance] = Block(duration_ms, steps, int(bool(event.get("compiles_inside"))))
            if len(sides) == 2:
                self.pairs.append(paired(index, self.halves.pop(index)))
                self._pair_measured(_number(event.get("t")))

    def _pair_measured(self, at_us: float | None) -> None:
        ratio, found = self._speedup()
        low, high = found or (None, None)
        elapsed_s = (at_us - self.since_us) / 1e6 if at_us and self.since_us else 0.0
        left_s = self.pace.left_s(elapsed_s)
        keys = {
            "pairs": len(self.pairs),
            "pair": self.pace.number or None,
            "of": self.pace.of or None,
            "speedup": ratio,
            "low": low,
            "high": high,
            "seconds_left": None if left_s is None else round(left_s, 1),
        }
        self.news.append({"event": "blocks", "t": at_us, **keys})

    def _step(self, step: object) -> None:
        if isinstance(step, int) and (self.last_step is None or step > self.last_step):
            self.last_step = step


class EventTail:
    """Reads on in every ``events-*.jsonl`` of a pass; one story for all its processes."""

    def __init__(self, raw: Path, compiles: CompileTail | None = None) -> None:
        self._raw, self._compiles = raw, compiles
        self._places: dict[Path, int] = {}
        self.story = Story()

    def poll(self) -> bool:
        """Read what came since, at most 1 MiB a file; True if any file had something."""
        found = sorted(self._raw.glob("events-*.jsonl"))
        read = sum(self._read_on(path) for path in found) > 0
        if self._compiles is not None:
            news, story = self._compiles.poll(), self.story
            story.news += news
            story.compiling = self._compiles.latest
            story.recompiled = self._compiles.recompiled
            read = read or bool(news)
        return read

    def take_news(self) -> list[dict[str, Any]]:
        """Lines of ``--live`` since the last call."""
        news, self.story.news = self.story.news, []
        return news

    def finish(self) -> Story:
        """Read to the end."""
        while self.poll():
            pass
        return self.story

    def _read_on(self, path: Path) -> bool:
        place = self._places.get(path, 0)
        try:
            with path.open("rb") as file:
                file.seek(place)
                data = file.read(_AT_ONCE)
        except OSError:
            return False
        whole = data.rfind(b"\n") + 1
        if not whole and len(data) == _AT_ONCE:
            whole = len(data)  # a line longer than that is none of ours: step over it
        self._places[path] = place + whole
        for line in data[:whole].splitlines():
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue  # the parser counts these
            if isinstance(event, dict):
                self.story.hear(event, path.name)
        return whole > 0


def _number(value: object) -> float | None:
    known = isinstance(value, int | float) and math.isfinite(value) and abs(value) < 1e18
    return float(value) if known else None  # type: ignore[arg-type]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

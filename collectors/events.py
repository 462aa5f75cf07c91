"""The child's events, read as they are written: for the progress line and the choice of passes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_AT_ONCE = 1 << 20
_WORDS = {
    "cold": "cold compile",
    "warmup": "warm-up",
    "block": "paired block",
    "profile": "profiling",
    "tail": "running to the end",
    "ceilings": "measuring device limits",
    "comparing": "comparing outputs",
}


@dataclass(slots=True)
class Story:
    """What the events reported so far. ``crash_stance``: where an exception reached the top."""

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

    @property
    def words(self) -> str | None:
        """The phase, in the words of the progress line."""
        if self.phase is None:
            return None
        stance = f" ({self.stance})" if self.phase == "profile" and self.stance else ""
        return " ".join(filter(None, (_WORDS.get(self.phase, self.phase), self.detail))) + stance

    def hear(self, event: dict[str, Any]) -> None:
        """Take one event in; unknown ones and unknown keys are passed over."""
        kind = event.get("event")
        self._step(event.get("step"))
        if kind == "phase":
            self.phase, self.stance = _text(event.get("phase")), _text(event.get("stance"))
            self.detail = _text(event.get("detail"))
        elif kind in ("first_call", "calls"):
            self.called = True
        elif kind == "steps":
            rows = event.get("rows")
            if isinstance(rows, list) and rows and isinstance(rows[-1], list) and rows[-1]:
                self._step(rows[-1][0])
        elif kind == "block" and isinstance(event.get("stance"), str):
            self.stances_measured.add(event["stance"])
        elif kind == "disabled":
            self.disabled = True
        elif kind == "done":
            self.stopping = self.stopping or event.get("stopping") is True
        elif kind == "error":
            self.crashed = True
            self.crash_stance = _text(event.get("stance"))

    def _step(self, step: object) -> None:
        if isinstance(step, int) and (self.last_step is None or step > self.last_step):
            self.last_step = step


class EventTail:
    """Reads on in every ``events-*.jsonl`` of a pass; one story for all its processes."""

    def __init__(self, raw: Path) -> None:
        self._raw = raw
        self._places: dict[Path, int] = {}
        self.story = Story()

    def poll(self) -> bool:
        """Read what came since, at most 1 MiB a file; True if any file had something."""
        found = sorted(self._raw.glob("events-*.jsonl"))
        return sum(self._read_on(path) for path in found) > 0

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
                self.story.hear(event)
        return whole > 0


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

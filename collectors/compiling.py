"""Compiles as they go on, read from torch's structured logs while torch writes them.

For the status line and ``--live``, so only what says where a compile is: its function, the phase,
the kernels that the generated code names, and those that are in the private cache by now. Payloads
are read a line at a time, and nothing is kept of the others.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traceview.collectors.child.secrets import masked_message
from traceview.torchtext.guards import parse_guard
from traceview.torchtext.output_code import defines_kernel
from traceview.torchtext.phases import part_of
from traceview.words.names import PHASES
from traceview.words.numbers import plural
from traceview.words.text import one_line, shorten

_AT_ONCE = 1 << 20
_REASON = 1 << 14  # characters read of a recompile's reasons
_COUNT_EVERY_S = 1.0
_SILENT_S = 3.0
_HEADER = re.compile(rb"V\d{4} \S+ (\d+) [^{]*(\{.*)")
_KINDS = (
    "chromium_event",
    "str",
    "dynamo_start",
    "compilation_metrics",
    "artifact",
    "inductor_output_code",
)
_KIND = re.compile(rb'\{"(%s)"' % "|".join(_KINDS).encode())
_VALUE = re.compile(rb'\t"(name|ph|ts)": "?(.*?)"?,?\s*$')
#: What a record of another shape raises; the parser counts these.
_ANOTHER_SHAPE = (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError)
_BACKWARD = "entire_backward_compile"
#: A built kernel in Inductor's and in Triton's cache.
_BUILT = ("*/*.main.so", "*/*.cubin")


@dataclass(slots=True)
class Compiling:
    """One compile; ``built``: kernels in the cache since it began, None while none is."""

    compile_id: str
    pid: int
    since_us: float
    function: str | None = None
    file: str | None = None
    line: int | None = None
    direction: str = "forward"
    reason: str | None = None
    part: str | None = None
    kernels: int = 0
    built: int | None = None
    ended: bool = False
    phases: list[str] = field(default_factory=list)
    told: tuple[object, ...] = (None, 0, None)

    def keys(self) -> dict[str, Any]:
        """Its keys in every line of ``--live``."""
        names = ("compile_id", "pid", "function", "file", "line", "direction", "reason")
        return {name: getattr(self, name) for name in names}

    def went_on(self) -> Iterator[dict[str, Any]]:
        """The line about how far it is, if that is news."""
        now = (self.part, self.kernels, self.built)
        if now != self.told:
            self.told = now
            phase = PHASES[self.part] if self.part else None
            more = {"phase": phase, "kernels": self.kernels, "kernels_built": self.built}
            yield {"event": "compile_phase", "t": time.time() * 1e6, **self.keys(), **more}

    def words(self, now_us: float) -> str:
        """``compiling train_step, 24 s, 3 of 12 kernels built``; afterwards only what it was."""
        verb = "recompiling" if self.reason else "compiling"
        verb = verb.replace("ing", "ed") if self.ended else verb
        backward = "backward of " if self.direction == "backward" else ""
        why = f" ({shorten(self.reason, 50)})" if self.reason else ""
        parts = [f"{verb} {backward}{one_line(self.function or self.compile_id, 40)}{why}"]
        if self.ended:
            return parts[0]
        seconds = (now_us - self.since_us) / 1e6
        parts += [f"{seconds:.0f} s"] if seconds >= _SILENT_S else []
        if self.kernels and self.part in ("codegen", "kernel_compile"):
            of = plural(self.kernels, "kernel")
            parts.append(f"{of} to build" if self.built is None else f"{self.built} of {of} built")
        elif self.part:
            parts.append(PHASES[self.part])
        return ", ".join(parts)


class CompileTail:
    """Reads on in every log of ``structured``; ``caches`` are where kernels are built."""

    def __init__(self, structured: Path, caches: Sequence[Path] = ()) -> None:
        self._structured, self._caches = structured, caches
        self._logs: dict[Path, _Log] = {}
        self._counted = 0.0

    def poll(self) -> list[dict[str, Any]]:
        """Lines of ``--live`` about what came since."""
        news: list[dict[str, Any]] = []
        for path in sorted(self._structured.glob("*.log")):
            news += self._logs.setdefault(path, _Log(path)).read_on()
        latest, now = self.latest, time.monotonic()
        if latest and latest.kernels and now - self._counted >= _COUNT_EVERY_S:
            self._counted, latest.built = now, self._built(latest)
        return news + [line for each in self._going_on() for line in each.went_on()]

    @property
    def latest(self) -> Compiling | None:
        """The compile that began last, of those that go on."""
        return max(self._going_on(), key=lambda each: each.since_us, default=None)

    @property
    def recompiled(self) -> Compiling | None:
        """The recompile that began last, ended or not."""
        found = (log.recompiled for log in self._logs.values() if log.recompiled)
        return max(found, key=lambda each: each.since_us, default=None)

    def _going_on(self) -> Iterator[Compiling]:
        return (each for log in self._logs.values() for each in log.going_on.values())

    def _built(self, latest: Compiling) -> int | None:
        built = set()
        for path in (
            each for cache in self._caches for glob in _BUILT for each in cache.glob(glob)
        ):
            try:
                if path.stat().st_mtime * 1e6 >= latest.since_us:
                    built.add(path.name)
            except OSError:
                continue  # it was renamed meanwhile
        return min(len(built), latest.kernels) or None


class _Log:
    """One process's log: where reading stopped, and what goes on there."""

    def __init__(self, path: Path) -> None:
        self._path, self._place = path, 0
        self.going_on: dict[tuple[str, str], Compiling] = {}
        self.recompiled: Compiling | None = None
        self._files: dict[int, str] = {}
        self._known: dict[str, dict[str, Any]] = {}
        self._reasons: dict[str, str] = {}
        self._kind, self._id, self._pid = "", "", 0
        self._at_us = time.time() * 1e6
        self._values: dict[str, str] = {}
        self._text = ""

    def read_on(self) -> list[dict[str, Any]]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._place)
                data = file.read(_AT_ONCE)
        except OSError:
            return []
        whole = data.rfind(b"\n") + 1
        if not whole and len(data) == _AT_ONCE:
            whole = len(data)
        self._place += whole
        news: list[dict[str, Any]] = []
        for line in data[:whole].splitlines():
            if line[:1] == b"V":
                self._payload_ended()
                with suppress(*_ANOTHER_SHAPE):
                    news += self._header(line)
            elif self._kind:
                news += self._payload(line)
        return news

    def _header(self, line: bytes) -> Iterator[dict[str, Any]]:
        self._kind, self._values, self._text = "", {}, ""
        found = _HEADER.match(line)
        kind = _KIND.match(found[2]) if found else None
        if found is None or kind is None:
            return
        record = json.loads(found[2])
        name, self._pid = kind[1].decode(), int(found[1])
        ids = record.get("frame_id"), record.get("frame_compile_id")
        self._id = "/".join(map(str, ids)) if None not in ids else ""
        body = record[name]
        if name == "str" and isinstance(body, list) and len(body) == 2:
            self._files[body[1]] = str(body[0])
        elif name == "dynamo_start" and self._id:
            yield from self._started(body)
        elif name == "compilation_metrics":
            yield from self._ended("forward", failed=body.get("fail_type"))
        elif name != "artifact" or body.get("name") == "recompile_reasons":
            self._kind = name if self._id else ""

    def _started(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        frame = (body.get("stack") or [{}])[-1]
        file = self._files.get(frame["filename"])
        keys: dict[str, Any] = {
            "function": str(frame["name"]),
            "file": file,
            "line": int(frame["line"]),
        }
        self._known[self._id] = keys
        reason = self._reasons.pop(self._id, None)
        yield from self._began(Compiling(self._id, self._pid, self._at_us, reason=reason, **keys))

    def _began(self, compiling: Compiling) -> Iterator[dict[str, Any]]:
        key = compiling.compile_id, compiling.direction
        if key not in self.going_on:  # another attempt at the same is none
            self.going_on[key] = compiling
            self.recompiled = compiling if compiling.reason else self.recompiled
            yield {"event": "compile_began", "t": compiling.since_us, **compiling.keys()}

    def _ended(self, direction: str, failed: object = None) -> Iterator[dict[str, Any]]:
        ended = self.going_on.pop((self._id, direction), None)
        if ended is not None:
            ended.ended = True
            seconds = max(0.0, self._at_us - ended.since_us) / 1e6
            more = {"seconds": round(seconds, 3), "kernels": ended.kernels, "failed": failed}
            yield {"event": "compile_ended", "t": self._at_us, **ended.keys(), **more}

    def _payload(self, line: bytes) -> Iterator[dict[str, Any]]:
        if self._kind == "artifact":
            if len(self._text) < _REASON:
                self._text += line[1:].decode(errors="replace") + "\n"
        elif self._kind == "inductor_output_code" and b"async_compile" in line:
            compiling = self._compiling()
            if compiling is not None and defines_kernel(line[1:].decode(errors="replace")):
                compiling.kernels += 1
        elif self._kind == "chromium_event" and (found := _VALUE.match(line)):
            key = found[1].decode()
            if key not in self._values:  # arguments come later, and may have the same names
                self._values[key] = found[2].decode(errors="replace")
            if key == "ph" and "name" in self._values:
                yield from self._phase(self._values["name"], self._values["ph"])
                self._kind = ""

    def _phase(self, name: str, mark: str) -> Iterator[dict[str, Any]]:
        at = re.fullmatch(r"\d{1,17}(\.\d*)?", self._values.get("ts", ""))
        self._at_us = float(at[0]) if at else self._at_us
        if name == _BACKWARD and mark == "B":
            keys = self._known.get(self._id, {})
            made = Compiling(self._id, self._pid, self._at_us, direction="backward", **keys)
            yield from self._began(made)
        elif name == _BACKWARD and mark == "E":
            yield from self._ended("backward")
        compiling = self._compiling()
        if compiling is None or mark not in ("B", "E"):
            return
        if mark == "B":
            compiling.phases.append(name)
        elif name in compiling.phases:
            compiling.phases.remove(name)
        part = None
        for each in compiling.phases:
            part = part_of(each, part)
        compiling.part = part

    def _compiling(self) -> Compiling | None:
        backward = self.going_on.get((self._id, "backward"))
        return backward or self.going_on.get((self._id, "forward"))

    def _payload_ended(self) -> None:
        """Reasons are a JSON list, or one bare string; the newest entry's is first."""
        if self._kind != "artifact" or not self._text.strip():
            return
        text = self._text.strip()
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = text
        first = found[0] if isinstance(found, list) and found else found
        self._reasons[self._id] = masked_message(one_line(parse_guard(str(first)).guard, 300))

"""fusion: which nodes of a graph Inductor's scheduler fused, and why not the others."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from traceview.parse.messages import Message
from traceview.parse.textlogs.sink import Row, Sink

_ATTEMPT = re.compile(r"^=+ attempting fusion \((\d{1,4})/\d{1,4}\): (\d{1,9}) nodes")
_COMPLETED = re.compile(
    r"^completed fusion round \((\d{1,4})/\d{1,4}\): fused (\d{1,9}) nodes into (\d{1,9}) nodes"
)
_CANDIDATE = re.compile(
    r"^  (?P<class>[A-Z]\w*Node)\(name='(?P<name>[^']{1,200})'\)"
    r"(?:, (?P<loops>[A-Z]\w*)\(\[.*?'origins=OrderedSet\(\[(?P<origins>[\w, ]*)\]\)')?"
)
_FUSED = re.compile(r"^fusing (\S+) with (\S+)$")
_REFUSED = re.compile(r"^cannot fuse (\S+) with (\S+): (.*)$")
_BENCHMARKED = re.compile(
    r"^(?:can|cannot) fuse \(benchmark\): fusing "
    r"(?:(?P<node1>.+?) with (?P<node2>.+?) cause|causes) "
    r"(?P<factor>\d+\.?\d*|inf|nan)x (?P<what>speedup|slowdown)"
)
_NODE_INDENT = "  "
_DECISION_HEADS = ("fusing ", "cannot fuse ", "can fuse ", "Exception in compiling ")
_ROUND_HEADS = ("=====", "completed ")
DECISIONS_PER_GRAPH = 100_000
#: How many frames are known at a time, and how many of their pairs.
_FRAMES, _PAIRS = 10_000, 200_000


class _Frame(msgspec.Struct, eq=False):
    """A frame whose graphs are being read: the last one's number, its round and its pairs."""

    index: int | None = None
    round: int | None = None
    seen: dict[tuple[Any, ...], Row] = {}


class Fusions:
    """Rows of fusions (``torch/_inductor/scheduler.py``).

    A pair that is looked at in every round is one row with ``times``. Forward and backward of a
    frame share their compile id: "attempting fusion (1/10)" begins the next graph, with rows of its
    own. The nodes listed in its first round are what Inductor's lowering made: candidates.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._frames: dict[tuple[int, str | None], _Frame] = {}
        self._pairs = 0

    def message(self, message: Message) -> None:
        frame = self._frame(message)
        for offset, line in enumerate(message.lines):
            if line.startswith(_NODE_INDENT):
                if frame.round == 1 and (candidate := _candidate(line)):
                    self._count(message, offset, frame, candidate)
            elif line.startswith(_DECISION_HEADS):
                if decision := _decision(line):
                    self._count(message, offset, frame, decision)
            elif line.startswith(_ROUND_HEADS):
                self._line_of_round(message, offset, frame, line)

    def _frame(self, message: Message) -> _Frame:
        name = self._sink.name(message)
        key = (message.pid, name.compile_key if name else message.compile_id)
        frame = self._frames.get(key)
        if frame is None:
            if len(self._frames) >= _FRAMES:
                del self._frames[next(iter(self._frames))]
            frame = self._frames[key] = _Frame()
        return frame

    def _line_of_round(self, message: Message, offset: int, frame: _Frame, line: str) -> None:
        if attempt := _ATTEMPT.match(line):
            frame.round = int(attempt[1])
            if frame.round == 1:
                frame.index = 0 if frame.index is None else frame.index + 1
                frame.seen = {}
        elif completed := _COMPLETED.match(line):
            number, before, after = map(int, completed.groups())
            counts = {"round": number, "nodes_before": before, "nodes_after": after, "times": 1}
            columns = {"decision": "round", "graph_index": frame.index, **counts}
            self._sink.add("fusions", message, offset, **columns)
        elif line.startswith("===== fusion complete"):
            frame.round = None

    def _count(self, message: Message, offset: int, frame: _Frame, decision: Row) -> None:
        key = tuple(map(decision.get, ("decision", "node1", "node2", "reason")))
        row = frame.seen.get(key)
        if row:
            row["times"] += 1
        elif len(frame.seen) < DECISIONS_PER_GRAPH:
            where = {"graph_index": frame.index, "round": frame.round, "times": 1}
            frame.seen[key] = self._sink.add("fusions", message, offset, **where, **decision)
            self._remembered(frame)

    def _remembered(self, frame: _Frame) -> None:
        """One more pair; of too many, those of other frames are forgotten."""
        self._pairs += 1
        if self._pairs > _PAIRS:
            for other in self._frames.values():
                if other is not frame:
                    other.seen = {}
            self._pairs = len(frame.seen)


def _candidate(line: str) -> Row | None:
    """Columns of a node that the scheduler starts with; None for a line that names none."""
    match = _CANDIDATE.match(line)
    if match is None:
        return None
    origins = match["origins"]
    return {
        "decision": "candidate",
        "node1": match["name"],
        "kind": _kind(match["class"], match["loops"]),
        "origins": None if origins is None else re.findall(r"\w+", origins),
    }


def _kind(class_: str, loops: str | None) -> str:
    """What a scheduler node does: its loops' class, or the node's own where it has none."""
    if class_ != "SchedulerNode":
        names = {"ExternKernel": "extern", "NopKernel": "nop", "ForeachKernel": "foreach"}
        return next((kind for name, kind in names.items() if class_.startswith(name)), "other")
    if loops is None:
        return "other"
    known = {"Pointwise": "pointwise", "Scatter": "pointwise"}
    return known.get(loops, "reduction" if loops.endswith("Reduction") else "other")


def _decision(line: str) -> Row | None:
    """Columns of one decision about a pair; None for a line that is none."""
    if line.startswith("fusing ") and (match := _FUSED.match(line)):
        return {"decision": "fused", "node1": match[1], "node2": match[2]}
    if line.startswith("cannot fuse ") and (match := _REFUSED.match(line)):
        node1, node2, reason = match.groups()
        return {"decision": "refused", "node1": node1, "node2": node2, "reason": reason}
    if line.startswith("Exception in compiling "):
        return {"decision": "refused", "node1": None, "node2": None, "reason": line}
    match = _BENCHMARKED.match(line)
    if match is None:
        return None
    return {
        "decision": "benchmarked",
        "node1": match["node1"],
        "node2": match["node2"],
        "speedup": _speedup(float(match["factor"]), match["what"], paired=bool(match["node1"])),
    }


def _speedup(factor: float, what: str, *, paired: bool) -> float | None:
    """Time before over time after; of a pair torch writes the slowdown upside down."""
    if factor <= 0 or factor != factor:
        return None
    return 1 / factor if what == "slowdown" and paired else factor

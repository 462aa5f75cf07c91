"""fusion, perf_hints and schedule: what Inductor says while it schedules a graph."""

from __future__ import annotations

import re
from typing import Any

from traceview.parse.textlogs.messages import Message
from traceview.parse.textlogs.sink import Row, Sink, split_at

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
_HINTS = (
    ("Using FallbackKernel: ", "fallback_kernel"),
    ("Skip comprehensive padding", "padding"),
    ("Reduction over non-contiguous dims.", "non_contiguous_reduction"),
    ("Found optimal tiling", "tiling"),
    ("possibly bad tiling", "tiling"),
    ("Grad tensors ", "grad_copy"),
)
_HINT_HEADS = tuple(head for head, _ in _HINTS)
_LONG_HINT = "Reduction over non-contiguous dims."  # the only one of more than one line
DECISIONS_PER_GRAPH = 100_000


class Fusions:
    """Rows of fusions (``torch/_inductor/scheduler.py``).

    A pair that is looked at in every round is one row with ``times``. Forward and backward of a
    frame share their compile id: "attempting fusion (1/10)" begins the next graph, with rows of its
    own. The nodes listed in its first round are what Inductor's lowering made: candidates.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._round: dict[str, int | None] = {}
        self._index: dict[str, int] = {}
        self._seen: dict[str, dict[tuple[Any, ...], Row]] = {}

    def message(self, message: Message) -> None:
        graph = f"{message.pid} {_key(self._sink, message)}"
        for offset, line in enumerate(message.lines):
            if line.startswith("=====") and (attempt := _ATTEMPT.match(line)):
                if int(attempt[1]) == 1:
                    self._seen[graph] = {}
                    self._index[graph] = self._index.get(graph, -1) + 1
                self._round[graph] = int(attempt[1])
            elif completed := _COMPLETED.match(line):
                number, before, after = map(int, completed.groups())
                counts = {"round": number, "nodes_before": before, "nodes_after": after, "times": 1}
                index = self._index.get(graph)
                self._sink.add(
                    "fusions", message, offset, decision="round", graph_index=index, **counts
                )
            elif line.startswith("===== fusion complete"):
                self._round[graph] = None
            elif decision := _decision(line):
                self._count(message, offset, graph, decision)
            elif self._round.get(graph) == 1 and (candidate := _candidate(line)):
                self._count(message, offset, graph, candidate)

    def _count(self, message: Message, offset: int, graph: str, decision: Row) -> None:
        seen = self._seen.setdefault(graph, {})
        key = tuple(decision.get(name) for name in ("decision", "node1", "node2", "reason"))
        row = seen.get(key)
        if row:
            row["times"] += 1
        elif len(seen) < DECISIONS_PER_GRAPH:
            number = self._round.get(graph)
            where = {"graph_index": self._index.get(graph), "round": number, "times": 1}
            seen[key] = self._sink.add("fusions", message, offset, **where, **decision)


class PerfHints:
    """Rows of perf_hints; the same hint of the same compile is one row with ``times``."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._seen: dict[tuple[int, str | None, str], Row] = {}

    def message(self, message: Message) -> None:
        for offset, lines in split_at(message.lines, _HINT_HEADS):
            alone = lines[0].startswith(_HINT_HEADS) and not lines[0].startswith(_LONG_HINT)
            parts = (lines[:1], lines[1:]) if alone else (lines,)
            for at, part in enumerate(parts):
                self._hint(message, offset + at, "\n".join(part).strip())

    def _hint(self, message: Message, offset: int, text: str) -> None:
        row = self._seen.get((message.pid, message.compile_id, text))
        if row:
            row["times"] += 1
        elif text:
            kind = next((kind for head, kind in _HINTS if text.startswith(head)), "other")
            row = self._sink.add("perf_hints", message, offset, kind=kind, message=text, times=1)
            self._seen[message.pid, message.compile_id, text] = row


class Schedules:
    """Rows of schedules: the nodes that end up in one generated kernel (GPU only)."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def message(self, message: Message) -> None:
        for offset, lines in split_at(message.lines, ("Schedule:",)):
            if lines[0].startswith("Schedule:"):
                text = "\n".join(lines[1:]).strip()
                nodes = re.findall(r"SchedulerNode\(name='([^']{1,200})'", text)
                self._sink.add("schedules", message, offset, nodes=nodes, text=text)


def _key(sink: Sink, message: Message) -> str | None:
    name = sink.name(message)
    return name.compile_key if name else message.compile_id


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

"""What Inductor says: perf_hints, schedule, inductor_metrics, output_code, fusion, cudagraphs."""

from __future__ import annotations

import re
from math import nan
from typing import Any

import msgspec
from msgspec.structs import asdict

from traceview.parse.messages.shapes import Message, clean
from traceview.parse.payloads.module import module
from traceview.parse.textlogs.sink import SAID_BY_RANKS, RawLine, Row, Sink, heads, split_at
from traceview.torchtext.cudagraphs import read_event
from traceview.torchtext.frames import parse_traceback, user_columns

_HINTS = (
    ("Using FallbackKernel: ", "fallback_kernel"),
    ("Skip comprehensive padding", "padding"),
    ("Reduction over non-contiguous dims.", "non_contiguous_reduction"),
    ("Found optimal tiling", "tiling"),
    ("possibly bad tiling", "tiling"),
    ("Grad tensors ", "grad_copy"),
)
_HINT_STARTS = tuple(start for start, _ in _HINTS)
_HINT_HEADS = heads(*_HINT_STARTS)
_SCHEDULE_HEADS = heads("Schedule:")
_HINT_CHARACTERS, _HINTS_SEEN = 16_000, 1_000
_LONG_HINT = "Reduction over non-contiguous dims."  # the only one of more than one line


class PerfHints:
    """Rows of perf_hints; the same hint of the same compile is one row with ``times``."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._seen: dict[tuple[int, str | None, str], Row] = {}

    def message(self, message: Message) -> None:
        for offset, text in split_at(message.text, _HINT_HEADS):
            alone = text.startswith(_HINT_STARTS) and not text.startswith(_LONG_HINT)
            for at, part in enumerate(text.split("\n", 1) if alone else (text,)):
                self._hint(message, offset + at, part.strip())

    def _hint(self, message: Message, offset: int, text: str) -> None:
        key = (message.pid, message.compile_id, text[:_HINT_CHARACTERS])
        row = self._seen.get(key)
        if row:
            row["times"] += 1
        elif text:
            kind = next((kind for head, kind in _HINTS if text.startswith(head)), "other")
            if len(self._seen) >= _HINTS_SEEN:
                del self._seen[next(iter(self._seen))]
            self._seen[key] = self._sink.add(
                "perf_hints", message, offset, kind=kind, message=key[-1], times=1
            )


def schedules(sink: Sink, message: Message) -> None:
    """Rows of schedules: the nodes that end up in one generated kernel (GPU only)."""
    for offset, lines in split_at(message.text, _SCHEDULE_HEADS):
        if lines.startswith("Schedule:"):
            text = lines.partition("\n")[2].strip()
            nodes = re.findall(r"SchedulerNode\(name='([^']{1,200})'", text)
            sink.add("schedules", message, offset, nodes=nodes, text=text)


_TOTAL = re.compile(r"^\{'num_bytes_accessed': (\d{1,18}), 'nodes_num_elem': \[")
_NODE = re.compile(r"\((\w{1,60})\((?:name='|nodes=)([\w,]{1,100000})'?\), (\d{1,18})\)")
_ELEMENT_BYTES = 4


def inductor_metrics(sink: Sink, message: Message) -> None:
    """Rows of inductor_metrics: the bytes that the scheduler estimates for each kernel of a graph.

    ``torch/_inductor/compile_fx.py`` writes, once a graph (``count_bytes`` in graph.py):

        Graph Metrics:
        {'num_bytes_accessed': 33587200,
         'nodes_num_elem': [(SchedulerNode(name='op0'), 8396800), …],
         'node_runtimes': [(SchedulerNode(name='op0'), 0.008), …]}

    ``nodes_num_elem`` are bytes // 4, whatever the dtype.
    """
    for offset, line in enumerate(message.lines):
        total = _TOTAL.match(line)
        if total is not None:
            nodes = _NODE.findall(line[: line.find("'node_runtimes'")])
            sink.add(
                "inductor_metrics",
                message,
                offset,
                num_bytes_accessed=int(total[1]),
                nodes=[name for _, name, _ in nodes],
                node_kinds=[kind for kind, _, _ in nodes],
                node_bytes=[_ELEMENT_BYTES * int(count) for _, _, count in nodes],
            )


_WRITTEN = re.compile(r"^Output code written to: (?P<file>.+)$", re.MULTILINE)
_OPEN_MODULES = 256  # whose file may still be named
_HEADS = heads("Output code:", "Output code written to: ")
_read = SAID_BY_RANKS(module)


class OutputCode:
    """Rows of graphs with kind ``output_code``, and of generated_kernels."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._last: dict[tuple[int, str | None], Row] = {}

    def message(self, message: Message) -> None:
        key = (message.pid, message.compile_id)
        for offset, text in split_at(message.text, _HEADS):
            written = _WRITTEN.match(text)
            head, more, code = text.partition("\n")
            if written is not None and key in self._last:
                self._last[key].setdefault("file", written["file"])
            elif written is None and head.startswith("Output code:") and more:
                self._last.pop(key, None)
                if len(self._last) >= _OPEN_MODULES:
                    del self._last[next(iter(self._last))]
                self._last[key] = self._module(message, offset, code)

    def _module(self, message: Message, offset: int, text: str) -> Row:
        name = self._sink.name(message)
        found = _read(text)
        columns: Row = {"aot_id": found.aot_id}
        for kernel in found.kernels:
            self._sink.add("generated_kernels", message, offset, **columns, **asdict(kernel))
        columns |= {"attempt": name.attempt if name else None, "kind": "output_code", "text": text}
        return self._sink.add("graphs", message, offset, **columns)


_ATTEMPT = re.compile(r"^=+ attempting fusion \((\d{1,4})/\d{1,4}\): (\d{1,9}) nodes")
_COMPLETED = re.compile(
    r"^completed fusion round \((\d{1,4})/\d{1,4}\): fused (\d{1,9}) nodes into (\d{1,9}) nodes"
)
_CANDIDATE = re.compile(
    r"^  (?P<class>[A-Z]\w*Node)\(name='(?P<name>[^']{1,200})'\)"
    r"(?:, (?P<loops>[A-Z]\w*)\(\[.*?'origins=OrderedSet\(\[(?P<origins>[\w, ]*)\]\)')?"
)
_NODE_KINDS = (("ExternKernel", "extern"), ("NopKernel", "nop"), ("ForeachKernel", "foreach"))
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
    """Columns of a node that the scheduler starts with; None for a line that names none.

    What it does is its loops' class, or the node's own where it has none.
    """
    match = _CANDIDATE.match(line)
    if match is None:
        return None
    class_, loops, origins = match.group("class", "loops", "origins")
    if class_ != "SchedulerNode":
        kind = next((kind for name, kind in _NODE_KINDS if class_.startswith(name)), "other")
    elif loops in ("Pointwise", "Scatter"):
        kind = "pointwise"
    else:
        kind = "reduction" if (loops or "").endswith("Reduction") else "other"
    return {
        "decision": "candidate",
        "node1": match["name"],
        "kind": kind,
        "origins": None if origins is None else re.findall(r"\w+", origins),
    }


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
    # Time before over time after: of a pair torch writes the slowdown upside down.
    node1, node2, speedup = match["node1"], match["node2"], float(match["factor"]) or nan
    if match["what"] == "slowdown" and node1:
        speedup = 1 / speedup
    known = None if speedup != speedup else speedup
    return {"decision": "benchmarked", "node1": node1, "node2": node2, "speedup": known}


_STACK_LINE, _STACK_LINES = " " * 9, 200
_ADVICE = "torch.compiler.cudagraph_mark_step_begin()"
_OVERWRITE_LINES = 40
_EVENT_HEADS = heads(
    "skipping cudagraph",
    "disabling cudagraphs ",
    "Recording ",
    "Re-recording ",
    "Running ",
    "Checkpointing ",
    "Created ",
    "  Partition ",
    "Partition ",
    "    op",
    "[",
    "CUDAGraph supports ",
    _STACK_LINE,
)


class Cudagraphs:
    """Rows of cudagraph_events from TORCH_LOGS=cudagraphs; skips are written without it too.

    ``torch/_inductor/cudagraph_*``: skipped, handed over, warmed up, captured. Partition lines are
    written even where cudagraphs are off and prove nothing; a ``record`` row does.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._unplaced: tuple[Row, list[str]] | None = None

    def message(self, message: Message) -> None:
        for offset, text in split_at(message.text, _EVENT_HEADS):
            if text.startswith(_STACK_LINE):
                self._stack(text)
                continue
            self._unplaced = None
            columns = cudagraph_event(text)
            if columns is not None:
                row = self._sink.add("cudagraph_events", message, offset, **columns, origin="text")
                if columns["event"] == "partition":
                    self._unplaced = (row, [])

    def _stack(self, text: str) -> None:
        """The stack of a node that splits a partition: a message of its own for every line."""
        if self._unplaced is not None:
            row, stack = self._unplaced
            if len(stack) < _STACK_LINES:
                stack.append(text)
            row.update(user_columns(parse_traceback("\n".join(stack))))


class Overwrites:
    """Rows of cudagraph_events from tracebacks on stderr: a cudagraph's output was overwritten."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._lines: list[str] = []
        self._number = 0

    @property
    def open(self) -> bool:
        """Whether the next line belongs to a message."""
        return bool(self._lines)

    def line(self, raw: RawLine) -> None:
        """Read one raw line; the message ends with torch's advice."""
        if b"output of CUDAGraphs that has been overwritten" in raw.data:
            self.end()
            text = clean(raw.data)
            self._lines, self._number = [text[max(0, text.find("Error: accessing")) :]], raw.number
        elif self._lines:
            self._lines.append(clean(raw.data))
        if self._lines and (_ADVICE in self._lines[-1] or len(self._lines) > _OVERWRITE_LINES):
            self.end()

    def end(self) -> None:
        """The open message is complete."""
        if self._lines:
            text = "\n".join(self._lines).replace("Stack trace: File ", "Stack trace:\n  File ", 1)
            columns = cudagraph_event(text) or {}
            self._sink.raw("cudagraph_events", self._number, **columns, origin="stderr")
        self._lines = []


def cudagraph_event(text: str) -> Row | None:
    """Columns of one message without its origin; None for an empty one."""
    if not text.strip():
        return None
    return asdict(read_event(text)) | user_columns(parse_traceback(text))

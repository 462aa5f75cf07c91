"""Generated kernels and their calls: the output code's, with the lines that provenance gives them.

``inductor_provenance_tracking_kernel_stack_traces`` is ``{"kernel:handle": [user stack, …]}``,
``…_node_mappings`` holds ``cppCodeToPost`` (kernel to post-grad nodes) and ``postToPre``. Both come
right after the code that they tell of, and need INDUCTOR_PROVENANCE=1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from traceview.parse.cutting import Record
from traceview.parse.frames import (
    FILE_COMMENT,
    StackFrame,
    is_user_frame,
    parse_traceback,
    torch_roots,
)
from traceview.parse.structured.decode import json_object
from traceview.parse.structured.output_code import Call, parse_output_code
from traceview.parse.structured.state import CodeSection, Compile, Process, Reader, Row

_POST_NODE = re.compile(r"\n +(?P<node>\w+)(?: *:[^=\n]*)? = torch\.ops\.(?P<op>\w+\.\w+)")

_IN_PLACE = re.compile(r"^\s+\w+ \S{1,2}= [^;]+;  (?P<node>\w+)(?: *:[^=]*)? = ")
_ASSIGNED = re.compile(r"^\s+(?P<node>\w+)(?: *:[^=]*)? = ")


class _Op(NamedTuple):
    """A node of a graph: its place there and its operator."""

    position: int
    name: str


def module_rows(text: str) -> tuple[list[Row], list[Row]]:
    """Rows of ``generated_kernels`` and ``kernel_calls`` that generated code gives by itself."""
    kernels, calls = parse_output_code(text)
    rows: list[Row] = [
        {
            "kernel_name": kernel.name,
            "category": kernel.category,
            "kernel_path": kernel.path,
            "source_code": kernel.source,
            "fused_ops": list(kernel.ops),
            "source_nodes": list(kernel.nodes),
            "user_lines": list(kernel.lines),
            "launch_sites": kernel.launch_sites,
            "line_origin": "comment" if kernel.lines else None,
        }
        for kernel in kernels
    ]
    return rows, [_call_row(order, call) for order, call in enumerate(calls)]


def _call_row(order: int, call: Call) -> Row:
    """A C++ kernel has its nodes above its definition: those of its call, if there is one only."""
    kernel = call.kernel
    alone = kernel.launch_sites == 1 and not call.nodes
    return {
        "order": order,
        "kernel_name": kernel.name,
        "category": kernel.category,
        "handle": call.handle,
        "source_nodes": list(kernel.nodes if alone else call.nodes),
        "ops": list(kernel.ops if alone else call.ops),
        "user_lines": [],
    }


def kernel_stack_traces(reader: Reader, record: Record) -> None:
    """User lines of the newest code that has none yet and defines these kernels."""
    compile = reader.process.find(record)
    traces = json_object(reader, record, record.payload)
    if compile is None or not traces:
        return
    by_kernel: dict[str, dict[str, None]] = {}
    by_handle: dict[str, dict[str, None]] = {}
    for handle, stacks in traces.items():
        lines = by_kernel.setdefault(handle.rpartition(":")[0] or handle, {})
        innermost = by_handle.setdefault(handle, {})
        for stack in _list(stacks):
            found = user_lines(str(stack))
            lines |= dict.fromkeys(found)
            innermost |= dict.fromkeys(found[:1])
    section = _newest(compile, set(by_kernel))
    if section is None:
        return
    section.traced = True
    for row in section.kernels:
        if known := by_kernel.get(row["kernel_name"]):
            row["user_lines"], row["line_origin"] = list(known), "provenance"
    for call in section.calls:
        if (known := by_handle.get(_handle(call))) is not None:
            call["user_lines"], call["line_origin"] = list(known), "provenance"


def _handle(call: Row) -> str:
    return f"{call['kernel_name']}:{call['handle']}"


def node_mappings(reader: Reader, record: Record) -> None:
    """Post-grad nodes of every call; by way of them the operators that the code does not name."""
    compile = reader.process.find(record)
    mappings = json_object(reader, record, record.payload)
    if compile is None or not compile.sections:
        return
    section = compile.sections[-1]
    posts, before = _dict(mappings, "cppCodeToPost"), _dict(mappings, "postToPre")
    ops = _post_ops(reader.process, section) if posts else {}
    nodes_of: dict[str, list[str]] = {}
    for handle, listed in posts.items():
        names = nodes_of.setdefault(handle.rpartition(":")[0] or handle, [])
        names.extend(str(node) for node in _list(listed))
    for call in section.calls:
        nodes = [str(node) for node in _list(posts.get(_handle(call)))]
        call["post_nodes"] = nodes or None
        if not call["ops"]:
            call["ops"], call["source_nodes"] = _through(nodes, ops, before)
    for row in section.kernels:
        if not row["fused_ops"] and (named := nodes_of.get(row["kernel_name"])):
            row["fused_ops"], row["source_nodes"] = _through(named, ops, before)


def _through(
    nodes: list[str], ops: dict[str, _Op], before: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """(operators, traced nodes) of post-grad ``nodes``, each once, in the graph's order."""
    order = sorted({node for node in nodes if node in ops}, key=lambda node: ops[node].position)
    traced = (str(pre) for node in order for pre in _list(before.get(node)))
    return list(dict.fromkeys(ops[node].name for node in order)), list(dict.fromkeys(traced))


def settle(process: Process, kernels: list[Row], calls: list[Row]) -> None:
    """Lines that only the graphs' texts know, for rows that are complete otherwise.

    Those of kernels and calls without provenance; and which of a library call's lines is its own,
    where provenance names those of the views before it as well.
    """
    texts = _Lines(process)
    for row in kernels:
        if not row["user_lines"] and (found := texts.of(row, row["source_nodes"])):
            row["user_lines"], row["line_origin"] = found, "comment"
    for row in calls:
        if not row.get("line_origin"):  # else its node was made by a pass and has no line
            row["user_lines"] = texts.of(row, row["source_nodes"])
            row["line_origin"] = "comment" if row["user_lines"] else None
        if row["category"] in ("extern", "fallback") and len(row["user_lines"]) > 1:
            row["user_lines"] = texts.of(row, row["source_nodes"][-1:]) or row["user_lines"]


class _Lines:
    """The user's lines of a compile's nodes, from the comments of its graphs.

    Dynamo writes ``# File: /p/s.py:3 in forward, code: …`` above the nodes that came from there,
    and the graphs made of that one keep it. A backward's nodes are in its own graphs only.
    """

    def __init__(self, process: Process) -> None:
        self._texts: dict[tuple[str, str | None], list[str]] = {
            (key, None): list(texts) for key, texts in process.traced.items()
        }
        self._known: dict[tuple[str, str | None], dict[str, str]] = {}
        for row in process.rows["graphs"]:
            kind, key = row["kind"], row["compile_key"]
            if kind == "dynamo_output":
                self._texts.setdefault((key, None), []).append(row["text"])
            elif kind in ("before_post_grad", "post_grad"):
                self._texts.setdefault((key, row.get("aot_id")), []).append(row["text"])

    def of(self, row: Row, nodes: Iterable[str]) -> list[str]:
        """``file:line`` of ``nodes`` of the compile and code of ``row``, each once, in order."""
        key = row["compile_key"]
        traced, lowered = self._graph(key, None), self._graph(key, row["aot_id"])
        backward = str(row["aot_id"]).endswith("backward")
        first, second = (lowered, traced) if backward else (traced, lowered)
        found = (first.get(node) or second.get(node) for node in nodes)
        return list(dict.fromkeys(line for line in found if line))

    def _graph(self, key: str, aot_id: str | None) -> dict[str, str]:
        at = key, aot_id
        if at not in self._known:
            lines: dict[str, str] = {}
            for text in self._texts.get(at, ()):
                lines |= node_lines(text)
            self._known[at] = lines
        return self._known[at]


def node_lines(graph: str) -> dict[str, str]:
    """Node name to ``file:line`` of the user's own code, from the comments of a graph's text."""
    found: dict[str, str] = {}
    place: str | None = None
    for line in graph.splitlines():
        if "# File: " in line and (comment := FILE_COMMENT.match(line)):
            own = _is_users(comment["file"])
            place = f"{comment['file']}:{int(comment['line'])}" if own else None
        elif not line.strip():
            place = None
        elif place and " = " in line and (node := _ASSIGNED.match(line) or _IN_PLACE.match(line)):
            found[node["node"]] = place
    return found


@lru_cache(maxsize=1_000)
def _is_users(file: str) -> bool:
    return is_user_frame(StackFrame(file, None, None))


@lru_cache(maxsize=10_000)  # many kernels of a model come from one line of it
def user_lines(stack: str) -> tuple[str, ...]:
    """``file:line`` of the user's own frames in a quoted stack, innermost first."""
    frames = parse_traceback(stack)
    roots = torch_roots(frame.file for frame in frames)
    return tuple(f"{f.file}:{f.line}" for f in reversed(frames) if is_user_frame(f, roots))


def _newest(compile: Compile, names: set[str]) -> CodeSection | None:
    for section in reversed(compile.sections):
        if not section.traced and names & {row["kernel_name"] for row in section.kernels}:
            return section
    return None


def _post_ops(process: Process, section: CodeSection) -> dict[str, _Op]:
    """Node name to aten operator, in graph order, from the post-grad graph of the same code."""
    for row in reversed(process.rows["graphs"]):
        same = row["compile_key"] == section.graph["compile_key"]
        if same and row["kind"] == "post_grad" and row.get("aot_id") == section.graph["aot_id"]:
            found = enumerate(_POST_NODE.finditer(f"\n{row['text']}"))
            return {match["node"]: _Op(place, match["op"]) for place, match in found}
    return {}


def _dict(mappings: dict[str, Any], key: str) -> dict[str, Any]:
    value = mappings.get(key)
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

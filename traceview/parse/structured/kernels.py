"""Generated kernels: the output code's, with the user lines that provenance artifacts give them.

``inductor_provenance_tracking_kernel_stack_traces`` is ``{"kernel:handle": [user stack, …]}``,
``…_node_mappings`` holds ``cppCodeToPost`` (kernel to post-grad nodes) and ``postToPre``. Both come
right after the code that they tell of, and need INDUCTOR_PROVENANCE=1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from traceview.parse.frames import StackFrame, is_user_frame, parse_traceback, torch_roots
from traceview.parse.structured.decode import json_object
from traceview.parse.structured.output_code import parse_output_code
from traceview.parse.structured.records import Record
from traceview.parse.structured.state import CodeSection, Compile, Process, Reader, Row

_POST_NODE = re.compile(
    r"^ +(?P<node>\w+)(?: *:[^=\n]*)? = torch\.ops\.(?P<op>\w+\.\w+)", re.MULTILINE
)

_FILE_COMMENT = re.compile(r"^\s*# File: (?P<file>.+?):(?P<line>\d{1,9}) in ")
_ASSIGNED = re.compile(r"^\s+(?P<node>\w+)(?: *:[^=]*)? = ")


def kernel_rows(text: str) -> Iterator[Row]:
    """Rows of ``generated_kernels`` that one generated module gives by itself."""
    for kernel in parse_output_code(text):
        yield {
            "kernel_name": kernel.name,
            "category": kernel.category,
            "kernel_path": kernel.path,
            "source_code": kernel.source,
            "fused_ops": kernel.ops,
            "source_nodes": kernel.nodes,
            "user_lines": kernel.lines,
            "launch_sites": kernel.launch_sites,
            "line_origin": "comment" if kernel.lines else None,
        }


def kernel_stack_traces(reader: Reader, record: Record) -> None:
    """User lines of the newest code that has none yet and defines these kernels."""
    compile = reader.process.find(record)
    traces = json_object(reader, record, record.payload)
    if compile is None or not traces:
        return
    by_kernel: dict[str, list[str]] = {}
    for handle, stacks in traces.items():
        lines = by_kernel.setdefault(handle.rpartition(":")[0] or handle, [])
        for stack in stacks if isinstance(stacks, list) else ():
            lines.extend(line for line in user_lines(str(stack)) if line not in lines)
    section = _newest(compile, set(by_kernel))
    if section is None:
        return
    section.traced = True
    for row in section.kernels:
        found = by_kernel.get(row["kernel_name"])
        if found:
            row["user_lines"], row["line_origin"] = found, "provenance"


def node_mappings(reader: Reader, record: Record) -> None:
    """Fused operators of kernels whose code names none, by way of the post-grad graph's nodes."""
    compile = reader.process.find(record)
    mappings = json_object(reader, record, record.payload)
    if compile is None or not compile.sections:
        return
    section = compile.sections[-1]
    nodes_of: dict[str, list[str]] = {}
    for handle, nodes in _dict(mappings, "cppCodeToPost").items():
        names = nodes_of.setdefault(handle.rpartition(":")[0] or handle, [])
        names.extend(str(node) for node in nodes if isinstance(nodes, list))
    before = _dict(mappings, "postToPre")
    ops = _post_ops(reader.process, section) if nodes_of else {}
    for row in section.kernels:
        nodes = nodes_of.get(row["kernel_name"])
        if nodes and not row["fused_ops"]:
            order = [node for node in ops if node in set(nodes)]
            row["fused_ops"] = list(dict.fromkeys(ops[node] for node in order))
            row["source_nodes"] = list(
                dict.fromkeys(str(pre) for node in order for pre in _list(before.get(node)))
            )


def finish(process: Process) -> None:
    """Lines of kernels without provenance: those that the captured graph gives their nodes.

    Dynamo writes ``# File: /p/s.py:3 in forward, code: …`` above the nodes that came from there.
    """
    captured = {
        row["compile_key"]: row["text"]
        for row in process.rows["graphs"]
        if row["kind"] == "dynamo_output"
    }
    lines_of: dict[str | None, dict[str, str]] = {}
    for row in process.rows["generated_kernels"]:
        key = row["compile_key"]
        if row["user_lines"] or not row["source_nodes"] or key not in captured:
            continue
        if key not in lines_of:
            lines_of[key] = node_lines(captured[key])
        known = lines_of[key]
        found = [known[node] for node in row["source_nodes"] if node in known]
        if found:
            row["user_lines"], row["line_origin"] = list(dict.fromkeys(found)), "comment"


def node_lines(graph: str) -> dict[str, str]:
    """Node name to ``file:line`` of the user's own code, from the comments of a graph's text."""
    found: dict[str, str] = {}
    place: str | None = None
    for line in graph.splitlines():
        if comment := _FILE_COMMENT.match(line):
            frame = StackFrame(comment["file"], int(comment["line"]), None)
            place = f"{frame.file}:{frame.line}" if is_user_frame(frame) else None
        elif not line.strip():
            place = None
        elif place and (node := _ASSIGNED.match(line)):
            found[node["node"]] = place
    return found


def user_lines(stack: str) -> list[str]:
    """``file:line`` of the user's own frames in a quoted stack, innermost first."""
    frames = parse_traceback(stack)
    roots = torch_roots(frame.file for frame in frames)
    return [f"{f.file}:{f.line}" for f in reversed(frames) if is_user_frame(f, roots)]


def _newest(compile: Compile, names: set[str]) -> CodeSection | None:
    for section in reversed(compile.sections):
        if not section.traced and names & {row["kernel_name"] for row in section.kernels}:
            return section
    return None


def _post_ops(process: Process, section: CodeSection) -> dict[str, str]:
    """Node name to aten operator, in graph order, from the post-grad graph of the same code."""
    for row in reversed(process.rows["graphs"]):
        same = row["compile_key"] == section.graph["compile_key"]
        if same and row["kind"] == "post_grad" and row.get("aot_id") == section.graph["aot_id"]:
            return {match["node"]: match["op"] for match in _POST_NODE.finditer(row["text"])}
    return {}


def _dict(mappings: dict[str, Any], key: str) -> dict[str, Any]:
    value = mappings.get(key)
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

"""Generated kernels and their calls: the output code's, with the lines that provenance gives them.

``inductor_provenance_tracking_kernel_stack_traces`` is ``{"kernel:handle": [user stack, …]}``,
``…_node_mappings`` holds ``cppCodeToPost`` (kernel to post-grad nodes) and ``postToPre``. Both come
right after the code that they tell of, and need INDUCTOR_PROVENANCE=1.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from traceview.parse.cutting import Record
from traceview.parse.kineto.categories import is_users
from traceview.parse.payloads.module import Traces, traces
from traceview.parse.structured.decode import json_object, told
from traceview.parse.structured.state import CodeSection, Process, Reader, Row
from traceview.torchtext.fx import (
    called_operators,
    lowered_operators,
    node_lines,
    operator_word,
)


def kernel_stack_traces(reader: Reader, record: Record) -> None:
    """User lines of the newest code that has none yet and defines these kernels."""
    compile = reader.process.find(record)
    found = told(record, Traces, lambda: traces(json_object(reader, record, record.raw)))
    names = found.by_kernel.keys()
    untraced = (s for s in reversed(compile.sections if compile else ()) if not s.traced)
    section = next((s for s in untraced if names & {row["kernel_name"] for row in s.kernels}), None)
    if section is None:
        return
    section.traced = True
    for row in section.kernels:
        if known := found.by_kernel.get(row["kernel_name"]):
            row["user_lines"], row["line_origin"] = list(known), "provenance"
    for call in section.calls:
        if (known := found.by_handle.get(_handle(call))) is not None:
            call["user_lines"], call["line_origin"] = list(known), "provenance"


def _handle(call: Row) -> str:
    return f"{call['kernel_name']}:{call['handle']}"


def node_mappings(reader: Reader, record: Record) -> None:
    """Post-grad nodes of every call; by way of them the operators that the code does not name."""
    compile = reader.process.find(record)
    mappings = json_object(reader, record, record.raw)
    if compile is None or not compile.sections:
        return
    section = compile.sections[-1]
    posts, before = _dict(mappings, "cppCodeToPost"), _dict(mappings, "postToPre")
    through = _Through(reader.process, section, before)
    nodes_of: dict[str, list[str]] = {}
    for handle, listed in posts.items():
        names = nodes_of.setdefault(handle.rpartition(":")[0] or handle, [])
        names.extend(map(str, _list(listed)))
    for call in section.calls:
        nodes = [str(node) for node in _list(posts.get(_handle(call)))]
        call["post_nodes"] = nodes or None
        if not call["ops"]:
            call["ops"], call["source_nodes"] = through.of(nodes)
    # Library calls that the code does not comment, such as those in place: the n-th such call of an
    # operator is the n-th such node.
    known = {node for call in section.calls for node in call["post_nodes"] or ()}
    bare: dict[str, list[Row]] = {}
    for call in section.calls:
        if call["category"] == "fallback" and not (call["ops"] or call["post_nodes"]):
            bare.setdefault(operator_word(call["kernel_name"]), []).append(call)
    for word, calls in bare.items():
        alike = (n for n, op in through.operators.items() if operator_word(op) == word)
        nodes = [node for node in alike if node not in known]
        for call, node in zip(calls, nodes, strict=True) if len(nodes) == len(calls) else ():
            call["post_nodes"] = [node]
            call["ops"], traced = through.of([node])
            call["source_nodes"] = traced or [node]
    for row in section.kernels:
        if not row["fused_ops"] and (named := nodes_of.get(row["kernel_name"])):
            row["fused_ops"], row["source_nodes"] = through.of(named)


class _Through:
    """From post-grad nodes of one code to operators and traced nodes, if anything asks."""

    def __init__(self, process: Process, section: CodeSection, before: dict[str, Any]) -> None:
        self._process = process
        self._graph = section.graph
        self._before = before

    def of(self, nodes: list[str]) -> tuple[list[str], list[str]]:
        """(operators, traced nodes) of post-grad ``nodes``, each once, in the graph's order."""
        if not nodes:
            return [], []
        ops, place = self.operators, self._place
        order = sorted({node for node in nodes if node in ops}, key=place.__getitem__)
        traced = (str(pre) for node in order for pre in _list(self._before.get(node)))
        return list(dict.fromkeys(ops[node] for node in order)), list(dict.fromkeys(traced))

    @cached_property
    def _place(self) -> dict[str, int]:
        return {node: place for place, node in enumerate(self.operators)}

    @cached_property
    def operators(self) -> dict[str, str]:
        """Node to operator of the post-grad graph of the same code, in its order."""
        key, aot_id = self._graph["compile_key"], self._graph.get("aot_id")
        for row in reversed(self._process.rows["graphs"]):
            same = row["compile_key"] == key and row.get("aot_id") == aot_id
            if same and row["kind"] == "post_grad":
                return lowered_operators(row["text"])
        return {}


def settle(process: Process, kernels: list[Row], calls: list[Row]) -> None:
    """Lines that only the graphs' texts know, for rows that are complete otherwise.

    Those of kernels and calls without provenance; and which of a library call's lines is its own,
    where provenance names those of the views before it as well.
    """
    texts = _Lines(process)
    for row in (*kernels, *calls):
        # Inductor names a kernel after all origins of its buffers: the user's own operators, whose
        # results generated code reads, are not what it computes.
        column = "fused_ops" if "fused_ops" in row else "ops"
        own = {op for op in row[column] or () if is_users(op)}
        if not own or row["category"] in ("extern", "fallback"):
            continue
        nodes: dict[bool, set[str]] = {False: set(), True: set()}  # of the post-grad graph or not
        for graph in process.rows["graphs"]:
            if graph["compile_key"] == row["compile_key"]:
                called = called_operators(graph["text"]).items()
                nodes[graph["kind"] == "post_grad"] |= {node for node, op in called if op in own}
        row[column] = [op for op in row[column] if op not in own]
        row["source_nodes"] = [node for node in row["source_nodes"] if node not in nodes[False]]
        if row.get("post_nodes"):
            row["post_nodes"] = [node for node in row["post_nodes"] if node not in nodes[True]]
        if lines := texts.of(row, row["source_nodes"]):
            row["user_lines"], row["line_origin"] = lines, "comment"
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

    A backward's nodes are in its own graphs only.
    """

    def __init__(self, process: Process) -> None:
        self._traced = process.traced
        self._graphs: dict[tuple[str | None, str | None], list[Row]] = {}
        for row in process.rows["graphs"]:
            kind, key = row["kind"], row["compile_key"]
            if kind == "dynamo_output":
                self._graphs.setdefault((key, None), []).append(row)
            elif kind in ("before_post_grad", "post_grad"):
                self._graphs.setdefault((key, row.get("aot_id")), []).append(row)

    def of(self, row: Row, nodes: Iterable[str]) -> list[str]:
        """``file:line`` of ``nodes`` of the compile and code of ``row``, each once, in order."""
        key, aot_id = row["compile_key"], row["aot_id"]
        graphs = [(key, None), (key, aot_id)]
        if str(aot_id).endswith("backward"):
            graphs.reverse()
        found = (self._line(graphs, node) for node in nodes)
        return list(dict.fromkeys(line for line in found if line))

    def _line(self, graphs: list[tuple[str | None, str | None]], node: str) -> str | None:
        """By the newest graph that knows it; graphs that are not needed are not read."""
        for at in graphs:
            for row in reversed(self._graphs.get(at, ())):
                if place := lines_of(row).get(node):
                    return place
            for lines in reversed(self._traced.get(at[0], ()) if at[1] is None else ()):
                if place := lines.get(node):
                    return place
        return None


def lines_of(graph: Row) -> dict[str, str]:
    """The user's lines in a row of ``graphs``, read once."""
    if graph.get("lines") is None:
        graph["lines"] = node_lines(graph["text"])
    lines: dict[str, str] = graph["lines"]
    return lines


def _dict(mappings: dict[str, Any], key: str) -> dict[str, Any]:
    value = mappings.get(key)
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

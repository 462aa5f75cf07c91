"""Table ``clean_parts``: what a compiled callable with graph breaks calls that does not break.

A line is broken where the stack of a graph break has it, and where a line below it is. Of the
others, those right below a broken one are the largest parts without a break. What they take of an
eager step is the time of the operators at them and at every line below, and of their backward.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from traceview.derive.facts.places import frames
from traceview.derive.facts.rows import first_rank, frame, rows
from traceview.derive.syntax import Function, ReadSource, covers, functions_around, syntax_tree
from traceview.tables import Tables, from_rows
from traceview.torchtext import marks

Line = tuple[str, int]
#: Parts whose source is read: the largest ones.
MOST_READ = 3


def clean_parts(tables: Tables, read_source: ReadSource) -> pl.DataFrame | None:
    """The table, the part with most time first; None where no eager step was profiled."""
    broken = {
        (each.file, each.line)
        for row in rows(tables, "graph_breaks")
        for each in frames(row["user_stack"])
        if each.line is not None
    }
    ops = frame(tables, "line_ops", stance="eager")
    eager = _kernels(tables, "eager")
    if not tables.has("graph_breaks") or ops.is_empty() or not eager:
        return None
    result: list[dict[str, Any]] = []
    if broken:
        tree, compiled = _Tree(first_rank(ops.to_dicts()), broken), _kernels(tables, "compiled")
        head = {name: ops[name][0] for name in ("pass", "rank")}
        around, whole = tree.shares(tree.calls), sum(eager.values())
        for line, nodes in tree.parts().items():
            of_part = tree.shares(nodes)
            rest = {at: share - of_part.get(at, 0.0) for at, share in around.items()}
            ms = _sum(eager, of_part)
            row: dict[str, Any] = {"file": line[0], "line": line[1]}
            row["calls"] = len(nodes) / tree.steps
            row |= {"eager_ms": ms, "share": ms / whole, "rest_eager_ms": _sum(eager, rest)}
            row["rest_compiled_ms"] = _sum(compiled, rest) if compiled else None
            result.append(head | row)
    result.sort(key=lambda row: row["eager_ms"], reverse=True)
    for row in result[:MOST_READ]:
        row |= _how(read_source, row["file"], row["line"])
    return from_rows("clean_parts", result)


def _kernels(tables: Tables, stance: str) -> Mapping[Line, float]:
    """Line → ms of a step in kernels (on a CPU: operators) of it and of its backward."""
    found: dict[Line, float] = defaultdict(float)
    for row in first_rank(rows(tables, "matched_kernels", stance=stance)):
        found[row["file"], row["line"]] += row["ms"] or 0.0
    return found


def _sum(known: Mapping[Line, float], shares: Mapping[Line, float]) -> float:
    return sum(known.get(line, 0.0) * share for line, share in shares.items())


class _Tree:
    """The lines of eager steps, each below the line that called it."""

    def __init__(self, ops: list[Mapping[str, Any]], broken: set[Line]) -> None:
        self._rows = {row["op_id"]: row for row in ops}
        self.steps = sum(bool(re.match(marks.OUR_STEP, row["name"])) for row in ops) or 1
        self._above: dict[int, int | None] = {}
        own: dict[int, float] = defaultdict(float)
        for op, row in self._rows.items():
            parent = row["parent_id"]
            while parent is not None and self._rows[parent]["kind"] != "line":
                parent = self._rows[parent]["parent_id"]
            if row["kind"] == "line":
                self._above[op] = parent
            elif row["kind"] == "cpu_op" and parent == row["parent_id"] and parent is not None:
                own[parent] += row["duration_ns"]
        self._own = own
        self._broken: set[int] = set()
        for op in self._above:
            if self._line(op) in broken:
                self._broken.update(self._chain(op))
        #: The lines that call what breaks, from outside of it.
        self.calls = [op for op in self._broken if self._above[op] is None]

    def _line(self, op: int) -> Line:
        return self._rows[op]["file"], self._rows[op]["line"]

    def _chain(self, op: int | None) -> Iterator[int]:
        """``op`` and the lines above it."""
        while op is not None:
            yield op
            op = self._above[op]

    def parts(self) -> dict[Line, list[int]]:
        """Line → its runs: not broken, right below a broken line, and inside of a compiled call."""
        found: dict[Line, list[int]] = defaultdict(list)
        for op, above in self._above.items():
            if op not in self._broken and above in self._broken and self._rows[op]["region"]:
                found[self._line(op)].append(op)
        return found

    def shares(self, nodes: list[int]) -> dict[Line, float]:
        """Line → the part of its operators' time that lies below ``nodes``, 0 to 1."""
        wanted = set(nodes)
        inside: dict[Line, float] = defaultdict(float)
        whole: dict[Line, float] = defaultdict(float)
        for op, ns in self._own.items():
            whole[self._line(op)] += ns
            if not wanted.isdisjoint(self._chain(op)):
                inside[self._line(op)] += ns
        return {line: inside[line] / ns for line, ns in whole.items() if ns}


def _how(read_source: ReadSource, file: str, line: int) -> dict[str, Any]:
    """What the line calls, and the line of the user's to change for compiling that."""
    source = read_source(file) or ""
    tree, texts = syntax_tree(source), source.split("\n")
    around = functions_around(tree, line) if tree else []
    if tree is None or not around:
        return {}
    function = max(around, key=lambda node: node.lineno)
    owner = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and covers(n, line)]
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and covers(node, line):
            found = _made(owner[-1] if owner else tree, tree, function, node.func)
            if found is not None:
                at, before, added = found
                text = texts[at - 1].rstrip()
                callee = ast.unparse(node.func)
                edit = {"edit_line": at, "text": text, "before": before, "added": added}
                return {"callee": callee, **edit}
    return {}


def _made(
    owner: ast.AST, tree: ast.Module, function: ast.AST, callee: ast.expr
) -> tuple[int, bool, str] | None:
    """(line, whether the new line goes before it, the new line) for compiling ``callee``.

    A module where its class assigns it, the modules that a loop takes from such a list, or a
    function of the same file where it is defined.
    """
    name = one = ast.unparse(callee)
    for node in ast.walk(function):
        if isinstance(node, ast.For) and ast.unparse(node.target) == one:
            name = ast.unparse(node.iter)
    added = f"{name}.compile()" if name == one else f"for {one} in {name}: {one}.compile()"
    for node in ast.walk(owner):
        assigns = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if assigns and any(ast.unparse(each) == name for each in node.targets):  # type: ignore[attr-defined]
            return getattr(node, "end_lineno", None) or node.lineno, False, added  # type: ignore[attr-defined]
    for node in tree.body:
        if isinstance(node, Function) and node.name == name:
            first_line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            return first_line, True, "@torch.compile"
    return None

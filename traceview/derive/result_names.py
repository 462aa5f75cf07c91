"""What becomes of a compiled callable's results: table ``result_names``.

What a graph returns has to be written to memory, read or not. The compiler sees the graph alone;
which results are read, and how often, is in the source of the caller:

    state, rates = advance(state)
    if step % 1000 == 0:
        print(rates["melt"].mean())

Only loops count, and only calls whose result is taken apart by names. A name is left out as soon as
one of its uses is in each iteration.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import polars as pl

from traceview.derive.syntax import Function, ReadSource, covers, last_name, syntax_tree
from traceview.tables import Tables, from_rows

Row = dict[str, Any]
NEVER, SOMETIMES = "never", "sometimes"
_Kinds = tuple[type[ast.AST], ...]
_LOOP: _Kinds = (ast.For, ast.AsyncFor, ast.While)
_FUNCTION: _Kinds = (ast.FunctionDef, ast.AsyncFunctionDef)


def result_names(tables: Tables, read_source: ReadSource) -> pl.DataFrame:
    """Table ``result_names``; ``read_source`` gives a file's text, None where there is no copy."""
    rows: list[Row] = []
    sources = tables["sources"].select("pass", "file").drop_nulls().unique().sort("file")
    for region in tables["regions"].drop_nulls(["call_file", "call_line"]).to_dicts():
        made = syntax_tree(read_source(region["call_file"]) or "")
        names = _called_by(made, region["call_line"]) if made else set()
        head = {name: region[name] for name in ("pass", "rank", "region_id")}
        for file in sources.filter(pl.col("pass") == region["pass"])["file"] if names else ():
            if tree := syntax_tree(read_source(file) or ""):
                rows += [{**head, "file": file, **row} for row in unread(tree, names)]
    return from_rows("result_names", rows)


def _called_by(tree: ast.Module, line: int) -> set[str]:
    """Names by which what is compiled at ``line`` is called."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, Function):
            if any(covers(each, line) for each in node.decorator_list):
                found.add(node.name)
        elif isinstance(node, ast.Assign) and covers(node, line):
            found |= {last_name(target) for target in node.targets}
        elif isinstance(node, ast.Expr) and covers(node, line):  # ``model.compile()``
            call = node.value
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                found.add(last_name(call.func.value))
    return found - {""}


def unread(tree: ast.Module, names: set[str]) -> Iterator[Row]:
    """Columns of the table, for calls of ``names`` in a file."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in parents:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=items)], value=ast.Call(func=called)):
                loop = _above(parents, node, _LOOP)
            case _:
                continue
        if loop is None or last_name(called) not in names:
            continue
        scope = _above(parents, node, _FUNCTION) or tree
        for number, item in enumerate(items):
            if not isinstance(item, ast.Name):
                continue
            uses = [
                each
                for each in ast.walk(scope)
                if isinstance(each, ast.Name) and each.id == item.id
                if isinstance(each.ctx, ast.Load)
            ]
            if all(_is_seldom(parents, use, loop) for use in uses):
                yield {
                    "item": number,
                    "items": len(items),
                    "name": item.id,
                    "line": node.lineno,
                    "read": SOMETIMES if uses else NEVER,
                }


def _above(parents: dict[ast.AST, ast.AST], node: ast.AST, kind: _Kinds) -> ast.AST | None:
    above = parents.get(node)
    while above is not None and not isinstance(above, kind):
        if isinstance(above, _FUNCTION) and kind is _LOOP:
            return None
        above = parents.get(above)
    return above


def _is_seldom(parents: dict[ast.AST, ast.AST], use: ast.AST, loop: ast.AST) -> bool:
    """Whether it is outside of the loop, or below a test by ``%`` in it."""
    below, above = use, parents.get(use)
    while above is not None and above is not loop:
        if isinstance(above, ast.If) and below is not above.test:
            tested = any(
                isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mod)
                for each in ast.walk(above.test)
            )
            if tested and below in above.body:
                return True
        below, above = above, parents.get(above)
    return above is None

"""Table ``setting_sites``: lines of the user's own files that name a setting of torch's.

Recorded is which value a setting has, not who gave it; a line that names it is where to look.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from traceview.derive.syntax import syntax_tree
from traceview.tables import Tables, from_rows

#: More lines than this about one file are no settings.
MOST_SITES = 200


def setting_sites(tables: Tables, read_source: Callable[[str], str | None]) -> pl.DataFrame:
    """Table ``setting_sites``; ``read_source`` gives a file's text, None where there is no copy."""
    settings = tables["environment"].filter(
        (pl.col("section") == "env") | pl.col("section").str.ends_with("_config")
    )
    rows: list[dict[str, Any]] = []
    for (name_of_pass,), known in settings.group_by("pass", maintain_order=True):
        names = set(known["name"])
        sources = tables["sources"].filter(pl.col("pass") == name_of_pass)
        for file in sources["file"].unique(maintain_order=True):
            tree = syntax_tree(read_source(file) or "")
            found = list(_sites(tree, names))[:MOST_SITES] if tree else []
            rows += [{"pass": name_of_pass, "file": file, **site} for site in found]
    return from_rows("setting_sites", rows)


def _sites(tree: ast.Module, names: set[str]) -> Iterator[dict[str, Any]]:
    """In the order of the source: name, line and function of what names one of ``names``."""
    waiting: list[tuple[ast.AST, str]] = [(tree, "<module>")]
    while waiting:  # no recursion: an expression may be nested deeper than Python's stack
        node, function = waiting.pop()
        for text in _named(node):
            for name in names:
                if text == name or text.endswith(f".{name}") or name.endswith(f".{text}"):
                    yield {
                        "name": name,
                        "line": getattr(node, "lineno", None),
                        "function": function,
                    }
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        waiting += [(child, function) for child in reversed(list(ast.iter_child_nodes(node)))]


def _named(node: ast.AST) -> Iterator[str]:
    """What a node sets or quotes: ``config.name = …``, ``name=…`` in a call, ``"name"``.

    A bare word, such as ``debug``, may be anything's attribute or argument.
    """
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute) and _is_setting(target):
                yield target.attr
    elif isinstance(node, ast.keyword) and node.arg and "_" in node.arg:
        yield node.arg
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "_" in node.value:
        yield node.value


def _is_setting(target: ast.Attribute) -> bool:
    owner = target.value
    name = getattr(owner, "attr", getattr(owner, "id", ""))
    return "_" in target.attr or "config" in name

"""Which tables and columns a rule reads, as far as its source and its helpers' sources show it.

From ``check`` on, every function and class is followed that a module of traceview's defines; the
sources are parsed, not run.
"""

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from traceview.schema import all_tables

TABLES = frozenset(all_tables())


class Reads(NamedTuple):
    """Names of tables, and of what is asked of their rows."""

    tables: frozenset
    columns: frozenset


class _Module(NamedTuple):
    defined: dict  # name → node of a function, class or module constant
    methods: dict  # name → nodes of the methods of that name, in any class
    imported: dict  # name → (module, name there), or (module, None) for a module itself


@cache
def _module(name):
    tree = ast.parse(Path(find_spec(name).origin).read_text(encoding="utf-8"))
    defined, methods, imported = {}, {}, {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined[node.name] = node
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    methods.setdefault(item.name, []).append(item)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined.update({t.id: node.value for t in targets if isinstance(t, ast.Name)})
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("traceview"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                is_module = Path(find_spec(node.module).origin).name == "__init__.py" and (
                    Path(find_spec(node.module).origin).with_name(f"{alias.name}.py").exists()
                )
                found = (whole, None) if is_module else (node.module, alias.name)
                imported[alias.asname or alias.name] = found
    return _Module(defined, methods, imported)


def _defined(where, name):
    """(module, node) of what module ``where`` calls ``name``, followed through re-exports."""
    while name not in _module(where).defined:
        where, name = _module(where).imported.get(name, (None, None))
        if name is None:
            return
    yield where, _module(where).defined[name]


def _leads_to(module_name, node):
    """(module, node) of everything of traceview's that ``node`` names."""
    module = _module(module_name)
    helpers = {module_name, *(name for name, _ in module.imported.values())}
    shown = {
        (name, text) for name in helpers for text in _texts([_module(name).defined.get("__all__")])
    }
    helpers |= {where for name, text in shown for where, _ in _defined(name, text)}
    for item in ast.walk(node):
        if isinstance(item, ast.Name) and item.id in module.defined:
            yield module_name, module.defined[item.id]
        elif isinstance(item, ast.Name) and item.id in module.imported:
            where, name = module.imported[item.id]
            if name is not None:
                yield from _defined(where, name)
        elif isinstance(item, ast.Attribute):
            owner = item.value.id if isinstance(item.value, ast.Name) else None
            where, name = module.imported.get(owner, (None, ""))
            if name is None:
                yield from _defined(where, item.attr)
                continue
            for helper in helpers:
                for method in _module(helper).methods.get(item.attr, ()):
                    yield helper, method


def _texts(nodes):
    """String constants among ``nodes`` and inside tuples, lists and sets there."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            yield from _texts(node.elts)


def _is_tables(node):
    """``tables``, or what a class keeps of it: ``self._tables``."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.lstrip("_") == "tables"


def _is_chosen_by_name(node):
    """Whether ``node`` holds ``tables[name]``: then the names are arguments in it."""
    return any(
        isinstance(item, ast.Subscript)
        and _is_tables(item.value)
        and isinstance(item.slice, ast.Name)
        for item in ast.walk(node)
    )


def _own_reads(node):
    tables, columns = set(), set()
    by_name = _is_chosen_by_name(node)
    for item in ast.walk(node):
        if isinstance(item, ast.Call):
            values = [*item.args, *(keyword.value for keyword in item.keywords)]
            if by_name or any(map(_is_tables, values)):
                tables.update(_texts(values))
                columns.update(keyword.arg for keyword in item.keywords if keyword.arg)
            if isinstance(item.func, ast.Attribute):
                if item.func.attr == "has":
                    tables.update(_texts(values))
                elif item.func.attr in ("get", "col", "select", "drop_nulls", "sort"):
                    columns.update(_texts(values))
        elif isinstance(item, ast.Subscript):
            (tables if _is_tables(item.value) else columns).update(_texts([item.slice]))
        elif isinstance(item, (ast.For, ast.comprehension)):
            tables.update(_texts([item.iter]))
    return tables & TABLES, columns


@cache
def reads(module_name):
    """What ``check`` in that module reads, itself and through what it calls."""
    todo = [(module_name, _module(module_name).defined["check"])]
    seen, tables, columns = set(), set(), set()
    while todo:
        where, node = todo.pop()
        if (where, id(node)) in seen:
            continue
        seen.add((where, id(node)))
        own = _own_reads(node)
        tables |= own[0]
        columns |= own[1]
        todo.extend(_leads_to(where, node))
    return Reads(frozenset(tables), frozenset(columns))


def subscripts(module_name):
    """(line, name) of every constant in square brackets: columns of rows, mostly."""
    tree = ast.parse(Path(find_spec(module_name).origin).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript) or _is_tables(node.value):
            continue
        if not (isinstance(node.value, ast.Name) and node.value.id == "Literal"):
            yield from ((node.lineno, name) for name in _texts([node.slice]))

"""Where a Python source reads clocks: starts (``t0 = time.time()``) and the reads that use them.

Read with ``ast`` alone; nothing of the script is run or imported. Understood: ``time``'s clocks
under any import name, ``timeit.default_timer``, differences of them, and events with ``record`` and
``elapsed_time``. A clock that is handed to another function is not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from traceview.derive.syntax import Function, functions_around

_TIME_NAMES = ("time", "perf_counter", "monotonic", "process_time")
CLOCKS = frozenset(
    [f"time.{name}{suffix}" for name in _TIME_NAMES for suffix in ("", "_ns")]
    + ["timeit.default_timer"]
)
TIMEIT_CALLS = frozenset({"timeit.timeit", "timeit.repeat"})
EVENT = "torch.cuda.Event"
_MODULES = ("time", "timeit")

Scope = ast.Module | Function
#: The enclosing statements of a node, outermost first, each with the field it stands in.
Path = tuple[tuple[ast.AST, str], ...]
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BRANCHES = (ast.If, ast.ExceptHandler, ast.match_case, ast.IfExp)


class Site(msgspec.Struct, frozen=True):
    """One place in a scope: line, enclosing statements."""

    line: int
    path: Path

    def loops(self) -> list[ast.AST]:
        return [node for node, field in self.path if isinstance(node, _LOOPS) and field == "body"]

    def branches(self) -> list[tuple[ast.AST, str]]:
        """The conditional branches around it; a condition itself is in no branch."""
        return [s for s in self.path if isinstance(s[0], _BRANCHES) and s[1] in ("body", "orelse")]


class Start(msgspec.Struct, frozen=True):
    """A variable that holds a clock's reading (or an event that was recorded)."""

    variable: str
    clock: str
    site: Site


class Read(msgspec.Struct, frozen=True):
    """A later reading from which ``variable`` is subtracted (or the time elapsed since it)."""

    variable: str
    site: Site


class Clocks(msgspec.Struct, frozen=True):
    """All clock sites of one scope, in order of line, and its ``timeit`` calls."""

    starts: list[Start]
    reads: list[Read]
    timeit: list[tuple[str, Site]]


def import_names(tree: ast.Module) -> dict[str, str]:
    """Local name → dotted name for what the file imports of ``time`` and ``timeit``."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in _MODULES:
                    names[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom) and node.module in _MODULES and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def scope_at(tree: ast.Module, line: int, function: str | None) -> Scope:
    """The innermost function around ``line``, of that name if there is one; else the module."""
    around = functions_around(tree, line)
    named = [node for node in around if node.name == function]
    if function == "<module>" or not around:
        return tree
    return max(named or around, key=lambda node: node.lineno)


def nodes_of(scope: Scope) -> Iterator[tuple[ast.AST, Path]]:
    """Every node of the scope's own body with its path; nested functions are not entered."""
    waiting: list[tuple[ast.AST, Path]] = [(node, ()) for node in reversed(scope.body)]
    while waiting:
        node, path = waiting.pop()
        yield node, path
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        for field, value in reversed(list(ast.iter_fields(node))):
            inner = value if isinstance(value, list) else [value]
            deeper = (*path, (node, field)) if isinstance(node, (*_LOOPS, *_BRANCHES)) else path
            waiting.extend((x, deeper) for x in reversed(inner) if isinstance(x, ast.AST))


def clocks_of(scope: Scope, names: dict[str, str]) -> Clocks:
    """The clock sites of ``scope``; ``names`` as ``import_names`` gives them."""
    found = Clocks([], [], [])
    held: dict[str, Start] = {}
    for node, path in nodes_of(scope):
        site = Site(getattr(node, "lineno", 0), path)
        for start in _starts(node, site, names, held):
            held[start.variable] = start
            found.starts.append(start)
        found.reads.extend(_reads(node, site, names, held))
        clock = dotted(node.func, names) if isinstance(node, ast.Call) else None
        if clock in TIMEIT_CALLS:
            found.timeit.append((str(clock), site))
    return found


def dotted(node: ast.AST, names: dict[str, str]) -> str | None:
    """``pc`` or ``t.perf_counter`` as ``time.perf_counter``; None for what is not imported so."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = names.get(node.value.id)
        return f"{module}.{node.attr}" if module else None
    return None


def _clock(node: ast.AST, names: dict[str, str]) -> str | None:
    """The clock that ``node`` calls, if it is such a call."""
    name = dotted(node.func, names) if isinstance(node, ast.Call) else None
    return name if name in CLOCKS else None


def _starts(
    node: ast.AST, site: Site, names: dict[str, str], held: dict[str, Start]
) -> Iterator[Start]:
    """``t0 = clock()``, ``t0 = t1`` where t1 holds a reading, ``event.record()``."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        source = held.get(ast.unparse(node.value)) if _is_place(node.value) else None
        clock = _clock(node.value, names) or (source.clock if source else None)
        if clock:
            yield from (Start(ast.unparse(t), clock, site) for t in targets if _is_place(t))
    elif (event := _receiver(node, "record")) is not None:
        yield Start(event, EVENT, site)


def _reads(
    node: ast.AST, site: Site, names: dict[str, str], held: dict[str, Start]
) -> Iterator[Read]:
    """``clock() - t0``, ``t1 - t0``, ``start.elapsed_time(end)``."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_place(node.right):
        later = held.get(ast.unparse(node.left)) if _is_place(node.left) else None
        if _clock(node.left, names):
            yield Read(ast.unparse(node.right), site)
        elif later:
            yield Read(ast.unparse(node.right), later.site)
    elif isinstance(node, ast.Call) and node.args:
        event, end = _receiver(node, "elapsed_time"), held.get(ast.unparse(node.args[0]))
        if event is not None and end and end.clock == EVENT:
            yield Read(event, end.site)


def _receiver(node: ast.AST, method: str) -> str | None:
    """``starts[i]`` of the call ``starts[i].record()``; None for any other node."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    found = node.func.attr == method and _is_place(node.func.value)
    return ast.unparse(node.func.value) if found else None


def _is_place(node: ast.AST) -> bool:
    """A name, an attribute or an element: what can hold a reading."""
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript)

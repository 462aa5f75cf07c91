"""What becomes of a time that a script takes: a figure of something, or a duration to show."""

from __future__ import annotations

import ast
from collections.abc import Collection

from traceview.derive.clock_sites import Scope

_SHOW = frozenset(
    {"print", "echo", "write", "log", "debug", "info", "warning", "error", "critical", "exception"}
)
_UNITS = frozenset({60, 3600, 86400, 1e3, 1e6, 1e9, 1e-3, 1e-6, 1e-9})
_WRAPPERS = frozenset({"round", "float", "int", "str", "format", "timedelta"})
_AROUND = (ast.FormattedValue, ast.JoinedStr, ast.keyword, ast.Tuple)

Parents = dict[ast.AST, ast.AST]


def shown_whole(scope: Scope, variables: Collection[str]) -> set[str]:
    """Those of ``variables`` of which the scope only prints the times since they were set.

    Not where one is divided (a time a call, a rate, a ratio), returned, kept or compared: hours,
    minutes and milliseconds are the same duration.
    """
    parents = {child: node for node in ast.walk(scope) for child in ast.iter_child_nodes(node)}
    times: dict[str, list[ast.BinOp]] = {}
    for node in parents:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_short(node.right):
            times.setdefault(ast.unparse(node.right), []).append(node)
    return {
        variable
        for variable in variables
        if variable in times
        and all(_ends_shown(scope, parents, node, held=False) for node in times[variable])
    }


def _is_short(node: ast.AST) -> bool:
    """A name, or an attribute or element of one."""
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Name | ast.Constant):
        return False
    held = node.value if isinstance(node, ast.Attribute | ast.Subscript) else node
    return isinstance(held, ast.Name)


def _ends_shown(scope: Scope, parents: Parents, node: ast.AST, *, held: bool) -> bool:
    """Whether the value of ``node`` goes nowhere but to print; ``held``: by way of a name."""
    while (above := parents.get(node)) is not None:
        if isinstance(above, ast.BinOp):
            if not _is_scaled(above, node):
                return False
        elif isinstance(above, ast.Call):
            name = _called(above)
            if name in _SHOW:
                return True
            if name not in _WRAPPERS:
                return False
        elif isinstance(above, ast.Assign) and not held:
            return _is_name_shown(scope, parents, above)
        elif not isinstance(above, _AROUND):
            return False
        node = above
    return False


def _is_name_shown(scope: Scope, parents: Parents, assigned: ast.Assign) -> bool:
    target = assigned.targets[0]
    if len(assigned.targets) > 1 or not isinstance(target, ast.Name):
        return False
    uses = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
    ]
    return bool(uses) and all(_ends_shown(scope, parents, use, held=True) for use in uses)


def _is_scaled(around: ast.BinOp, part: ast.AST) -> bool:
    """Whether a duration stays one: another unit, or the text around it with ``%``."""
    other = around.left if around.right is part else around.right
    if isinstance(around.op, ast.Mod):
        return isinstance(other, ast.Constant) and isinstance(other.value, str)
    unit = isinstance(other, ast.Constant) and other.value in _UNITS
    return unit and isinstance(around.op, ast.Mult | ast.Div) and around.right is not part


def _called(call: ast.Call) -> str | None:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None

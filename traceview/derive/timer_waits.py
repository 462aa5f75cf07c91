"""Whether a clock of the script's is surely read without waiting for a GPU.

Only one form is a proof: between the two readings, in one block of statements, stand calls of
compiled code, methods of tensors and optimizers that queue work, and ``for … in range(…)`` around
them. Whatever else stands there may wait, and nothing is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from traceview.derive.clock_sites import CLOCKS, Scope, dotted, import_names

#: They queue work and go on; what waits in them the profile shows.
_QUEUEING = frozenset({"backward", "clone", "detach", "mean", "step", "sum", "zero_grad"})
_CONTEXTS = frozenset({"autocast", "enable_grad", "inference_mode", "no_grad"})
_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
_READING = (*_PLAIN, ast.Return)
#: Of an expression: what decides something on the host, or runs what cannot be followed.
_DECIDING = (
    ast.Compare, ast.BoolOp, ast.Not, ast.IfExp, ast.JoinedStr, ast.Lambda, ast.comprehension,
    ast.Await, ast.Yield, ast.YieldFrom,
)  # fmt: skip


def loops_that_queue(
    tree: ast.Module, scope: Scope, lines: tuple[int, int], call_line: int
) -> tuple[ast.For, ...] | None:
    """The loops around the call between the readings at ``lines``.

    None where the statements between them may do more than queue work.
    """
    start, read = lines
    for block in _blocks(scope):
        at = [_covering(block, line) for line in lines]
        if at[0] is None or at[1] is None or at[0] == at[1]:
            continue
        first, last = block[at[0]], block[at[1]]
        if not isinstance(first, _PLAIN) or not isinstance(last, _READING):
            return None
        own = _Own(call_line, _imported(tree))
        between = block[at[0] + 1 : at[1]]
        reads = first.lineno == start and _reads_first(last, read, import_names(tree))
        if reads and between and all(map(own.queues, between)):
            return own.found[0] if own.found else None
        return None
    return None


def times_of(loops: Iterable[ast.AST]) -> int | None:
    """How often a statement inside all of ``loops`` runs; None: the source doesn't say."""
    number = 1
    for loop in loops:
        times = _times(loop.iter) if isinstance(loop, ast.For) else None
        if times is None:
            return None
        number *= times
    return number


class _Own:
    """Statements that queue work; ``found``: the loops around each call at the call's line."""

    def __init__(self, call_line: int, imported: frozenset[str]) -> None:
        self._line, self._imported = call_line, imported
        self.found: list[tuple[ast.For, ...]] = []

    def queues(self, node: ast.stmt, loops: tuple[ast.For, ...] = ()) -> bool:
        if isinstance(node, ast.Pass):
            return True
        if isinstance(node, ast.For):
            inner = (*loops, node)
            plain = _is_range(node.iter) and not node.orelse
            return plain and all(self.queues(child, inner) for child in node.body)
        if isinstance(node, ast.With):
            known = all(_method(item.context_expr) in _CONTEXTS for item in node.items)
            return known and all(self.queues(child, loops) for child in node.body)
        return isinstance(node, _PLAIN) and self._plain(node, loops)

    def _plain(self, node: ast.stmt, loops: tuple[ast.For, ...]) -> bool:
        inside = list(ast.walk(node))
        if any(isinstance(child, _DECIDING) for child in inside):
            return False
        calls = [child for child in inside if isinstance(child, ast.Call)]
        others = [call for call in calls if not _is_queueing(call)]
        if not others:
            return True
        here = node.lineno <= self._line <= (node.end_lineno or node.lineno)
        if not here or len(others) > 1 or self._leads_away(others[0]):
            return False
        self.found.append(loops)
        return True

    def _leads_away(self, call: ast.Call) -> bool:
        """Whether it may be a library's function, which calls the compiled code and then waits."""
        root = call.func
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        return not isinstance(root, ast.Name) or root.id in self._imported


def _blocks(scope: Scope) -> Iterator[list[ast.stmt]]:
    """Every block of statements of a scope; nested functions are not entered."""
    waiting = [scope.body]
    while waiting:
        block = waiting.pop()
        yield block
        for node in block:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            waiting.extend(
                inner
                for name in ("body", "orelse", "finalbody")
                if (inner := getattr(node, name, None))
            )
            waiting.extend(handler.body for handler in getattr(node, "handlers", ()))


def _covering(block: list[ast.stmt], line: int) -> int | None:
    spans = [range(node.lineno, (node.end_lineno or node.lineno) + 1) for node in block]
    return next((n for n, span in enumerate(spans) if line in span), None)


def _reads_first(node: ast.stmt, line: int, names: dict[str, str]) -> bool:
    """Whether the first call that is done in ``node`` reads a clock, at ``line``."""
    calls = [child for child in ast.walk(node) if isinstance(child, ast.Call)]
    ends = [(call.end_lineno or 0, call.end_col_offset or 0) for call in calls]
    first = calls[ends.index(min(ends))] if calls else None
    return first is not None and first.lineno == line and dotted(first.func, names) in CLOCKS


def _is_queueing(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _QUEUEING


def _method(node: ast.expr) -> str | None:
    """``no_grad`` of ``torch.no_grad()``."""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else None


def _is_range(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    inner = (child for argument in node.args for child in ast.walk(argument))
    return node.func.id == "range" and not any(isinstance(child, ast.Call) for child in inner)


def _times(node: ast.expr) -> int | None:
    """100 of ``range(100)``; None for every other iterable."""
    if not _is_range(node):
        return None
    constants = [child for child in getattr(node, "args", ()) if isinstance(child, ast.Constant)]
    found = [constant.value for constant in constants if type(constant.value) is int]
    if not found or len(found) < len(getattr(node, "args", ())):
        return None
    try:
        return len(range(*found)) or None
    except (TypeError, ValueError, OverflowError):
        return None


def _imported(tree: ast.Module) -> frozenset[str]:
    """Names that imports of the file bind."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    names = (alias.asname or alias.name for node in imports for alias in node.names)
    return frozenset(name.partition(".")[0] for name in names)

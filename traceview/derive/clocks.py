"""What a Python source does with clocks: where it reads them, and what surrounds the readings.

Read with ``ast`` alone; nothing of the script is run or imported. Understood: ``time``'s clocks
under any import name, ``timeit.default_timer``, differences of them, and events with ``record`` and
``elapsed_time``. A clock that is handed to another function is not followed.

A clock is reported to be read without waiting for a GPU only where that is sure: between the two
readings, in one block of statements, stand calls of compiled code, methods of tensors and
optimizers that queue work, and ``for … in range(…)`` around them. Anything else there may wait.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

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

#: They queue work and go on; what waits in them the profile shows.
_QUEUEING = frozenset({"backward", "clone", "detach", "mean", "step", "sum", "zero_grad"})
_CONTEXTS = frozenset({"autocast", "enable_grad", "inference_mode", "no_grad"})
_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
_READING = (*_PLAIN, ast.Return)
#: Of an expression: what decides something on the host, or runs what cannot be followed.
_DECIDING = (
    *(ast.Compare, ast.BoolOp, ast.Not, ast.IfExp, ast.JoinedStr, ast.Lambda, ast.comprehension),
    *(ast.Await, ast.Yield, ast.YieldFrom),
)

_SHOW = frozenset(
    {"print", "echo", "write", "log", "debug", "info", "warning", "error", "critical", "exception"}
)
_UNITS = frozenset({60, 3600, 86400, 1e3, 1e6, 1e9, 1e-3, 1e-6, 1e-9})
_WRAPPERS = frozenset({"round", "float", "int", "str", "format", "timedelta"})
_AROUND = (ast.FormattedValue, ast.JoinedStr, ast.keyword, ast.Tuple)

Parents = dict[ast.AST, ast.AST]


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
            known = all(_called(item.context_expr) in _CONTEXTS for item in node.items)
            return known and all(self.queues(child, loops) for child in node.body)
        return isinstance(node, _PLAIN) and self._plain(node, loops)

    def _plain(self, node: ast.stmt, loops: tuple[ast.For, ...]) -> bool:
        inside = list(ast.walk(node))
        if any(isinstance(child, _DECIDING) for child in inside):
            return False
        others = [
            call
            for call in inside
            if isinstance(call, ast.Call)
            and not (isinstance(call.func, ast.Attribute) and call.func.attr in _QUEUEING)
        ]
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


def _called(node: ast.AST) -> str | None:
    """``no_grad`` of ``torch.no_grad()``; None for what is no call by name."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None

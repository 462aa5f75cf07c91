"""What a Python source does with clocks: where it reads them, and what surrounds the readings.

Read with ``ast`` alone; nothing of the script is run or imported. Understood: ``time``'s clocks
under any import name, ``timeit.default_timer``, differences of them, events with ``record`` and
``elapsed_time``, and what times a function that it is given (``timeit``, pytest-benchmark). A
context manager of the file's own is read as a function that yields to the block below ``with``. A
clock that is handed to another function is not followed. ``torch.utils.benchmark`` and ``do_bench``
warm up and wait by themselves.

A clock is reported to be read without waiting for a GPU only where that is sure: between the two
readings, in one block of statements, stand calls of compiled code, methods of tensors and
optimizers that queue work, and ``for … in range(…)`` around them. Anything else there may wait.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeGuard

import msgspec

from traceview.derive.syntax import FEW, Function, covers, functions_around

_TIME_NAMES = ("time", "perf_counter", "monotonic", "process_time")
CLOCKS = frozenset(
    [f"time.{name}{suffix}" for name in _TIME_NAMES for suffix in ("", "_ns")]
    + ["timeit.default_timer"]
)
TIMEIT_CALLS = frozenset({"timeit.timeit", "timeit.repeat"})
#: The fixture of pytest-benchmark, by its name; it calls the function before it takes the time,
#: ``pedantic`` only if it is asked to.
BENCHMARK = "benchmark"
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
#: Of Python's, and no value of a tensor's is asked for.
_OF_CONTAINERS = frozenset({"len", "range", "enumerate", "zip"})
_BUILTINS = frozenset(dir(builtins))
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


class Timed(msgspec.Struct, frozen=True):
    """A call that times a function: ``timeit.timeit(lambda: f(x), number=100)``."""

    clock: str
    site: Site
    call: ast.Call
    warms_up: bool = False

    @property
    def calls(self) -> int | None:
        """How often it calls the function; None: the source doesn't say."""
        of_timeit = {"timeit.timeit": 3, "timeit.repeat": 4}
        named = "number" if self.clock in of_timeit else "rounds"
        given = [word.value for word in self.call.keywords if word.arg == named]
        given += self.call.args[of_timeit.get(self.clock, 99) :][:1]
        if not given:
            return 1_000_000 if self.clock in of_timeit else None
        number = given[0].value if isinstance(given[0], ast.Constant) else None
        return number if type(number) is int and number > 0 else None


class Clocks(msgspec.Struct, frozen=True):
    """All clock sites of one scope, in order of line, and its calls that time a function."""

    starts: list[Start]
    reads: list[Read]
    timed: list[Timed]


@lru_cache(maxsize=FEW)
def import_names(tree: ast.Module) -> Mapping[str, str]:
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
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        for field, value in reversed(list(ast.iter_fields(node))):
            inner = value if isinstance(value, list) else [value]
            deeper = (*path, (node, field)) if isinstance(node, (*_LOOPS, *_BRANCHES)) else path
            waiting.extend((x, deeper) for x in reversed(inner) if isinstance(x, ast.AST))


def clocks_of(scope: Scope, names: Mapping[str, str]) -> Clocks:
    """The clock sites of ``scope``; ``names`` as ``import_names`` gives them."""
    found = Clocks([], [], [])
    held: dict[str, Start] = {}
    for node, path in nodes_of(scope):
        site = Site(getattr(node, "lineno", 0), path)
        started: list[Start] = []
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            # ``t0 = clock()``, ``t0 = t1`` where t1 holds a reading.
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            source = held.get(ast.unparse(node.value)) if _is_place(node.value) else None
            clock = _clock(node.value, names) or (source.clock if source else None)
            if clock:
                started = [Start(ast.unparse(t), clock, site) for t in targets if _is_place(t)]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_place(node.right):
            # ``clock() - t0``, ``t1 - t0``.
            later = held.get(ast.unparse(node.left)) if _is_place(node.left) else None
            if later or _clock(node.left, names):
                found.reads.append(Read(ast.unparse(node.right), later.site if later else site))
        elif isinstance(node, ast.Call):
            function = dotted(node.func, names)
            if function in TIMEIT_CALLS:
                found.timed.append(Timed(str(function), site, node))
            elif _is_benchmark(node, scope):
                words = {word.arg for word in node.keywords}
                warms = isinstance(node.func, ast.Name) or "warmup_rounds" in words
                found.timed.append(Timed("pytest-benchmark", site, node, warms))
            elif (event := _receiver(node, "record")) is not None:
                started = [Start(event, EVENT, site)]
            elif node.args and (event := _receiver(node, "elapsed_time")) is not None:
                end = held.get(ast.unparse(node.args[0]))
                if end and end.clock == EVENT:
                    found.reads.append(Read(event, end.site))
        held |= {start.variable: start for start in started}
        found.starts.extend(started)
    return found


def dotted(node: ast.AST, names: Mapping[str, str]) -> str | None:
    """``pc`` or ``t.perf_counter`` as ``time.perf_counter``; None for what is not imported so."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = names.get(node.value.id)
        return f"{module}.{node.attr}" if module else None
    return None


def _clock(node: ast.AST, names: Mapping[str, str]) -> str | None:
    """The clock that ``node`` calls, if it is such a call."""
    name = dotted(node.func, names) if isinstance(node, ast.Call) else None
    return name if name in CLOCKS else None


def _is_benchmark(node: ast.Call, scope: Scope) -> bool:
    """Whether it calls the fixture of pytest-benchmark, which the function is given."""
    arguments = scope.args.args if isinstance(scope, Function) else []
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "pedantic":
        function = function.value
    named = isinstance(function, ast.Name) and function.id == BENCHMARK
    return named and any(argument.arg == BENCHMARK for argument in arguments)


def only_queues(tree: ast.Module, timed: Timed) -> bool:
    """Whether the function that is timed is surely one call that queues work, or the callable."""
    function = timed.call.args[0] if timed.call.args else None
    if isinstance(function, ast.Name):  # a function of the file's own may do anything
        return not any(
            isinstance(node, Function) and node.name == function.id for node in ast.walk(tree)
        )
    if not isinstance(function, ast.Lambda):
        return False
    body = ast.Expr(function.body, lineno=function.lineno, end_lineno=function.end_lineno)
    return _Own(function.lineno, tree).queues(body)


def contexts_around(tree: ast.Module, scope: Scope, line: int) -> Iterator[tuple[ast.With, Scope]]:
    """Each ``with`` around ``line`` whose context manager the file itself defines, as one function.

    A class is the function that does what ``__enter__`` does, yields, and does what ``__exit__``
    does.
    """
    defined = {node.name: node for node in tree.body if isinstance(node, Function | ast.ClassDef)}
    for node, _ in nodes_of(scope):
        if isinstance(node, ast.With) and node.lineno < line and covers(node, line):
            for item in node.items:
                name = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
                manager = defined.get(name.id) if isinstance(name, ast.Name) else None
                function = _as_one(manager) if isinstance(manager, ast.ClassDef) else manager
                if function is not None and yield_line(function) is not None:
                    yield node, function


def _as_one(manager: ast.ClassDef) -> ast.FunctionDef | None:
    methods = {node.name: node for node in manager.body if isinstance(node, ast.FunctionDef)}
    enter, leave = methods.get("__enter__"), methods.get("__exit__")
    if enter is None or leave is None or enter.lineno > leave.lineno:
        return None
    pause = ast.Expr(ast.Yield(), lineno=leave.lineno, end_lineno=leave.lineno)
    before = [node for node in enter.body if not isinstance(node, ast.Return)]
    body, lines = [*before, pause, *leave.body], (enter.lineno, leave.end_lineno)
    return ast.FunctionDef(manager.name, enter.args, body, [], lineno=lines[0], end_lineno=lines[1])


def yield_line(function: Scope) -> int | None:
    """The line of its only ``yield``; None where it has none, or several."""
    yields = [node for node, _ in nodes_of(function) if _yields(node)]
    return yields[0].lineno if len(yields) == 1 else None


def _yields(node: ast.AST) -> TypeGuard[ast.Expr]:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield)


def block_queues(tree: ast.Module, block: ast.With, line: int) -> tuple[ast.For, ...] | None:
    """The loops in ``block`` around the call at ``line``; None where it may do more than queue."""
    own = _Own(line, tree)
    queues = all(map(own.queues, block.body))
    return own.found[0] if queues and own.found else None


def called_alike(tree: ast.Module, scope: Scope, line: int) -> list[int]:
    """Other lines of the scope that call what the line calls, by the same name: ``fn(x)``."""
    own = _Own(line, tree)
    calls: dict[str, list[int]] = {}
    for node, _ in nodes_of(scope):
        if isinstance(node, ast.Call) and not own.leads_away(node):
            calls.setdefault(ast.unparse(node.func), []).append(node.lineno)
    alike = (lines for name, lines in calls.items() if line in lines and name not in _BUILTINS)
    return sorted({each for lines in alike for each in lines} - {line})


def root_of(node: ast.expr) -> ast.expr:
    """``self`` of ``self.nets[0].forward``."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node


def _receiver(node: ast.Call, method: str) -> str | None:
    """``starts[i]`` of the call ``starts[i].record()``; None for any other call."""
    if not isinstance(node.func, ast.Attribute) or not _is_place(node.func.value):
        return None
    return ast.unparse(node.func.value) if node.func.attr == method else None


def _is_place(node: ast.AST) -> bool:
    """A name, an attribute or an element: what can hold a reading."""
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript)


def loops_that_queue(
    tree: ast.Module, scope: Scope, lines: tuple[int, int], call_line: int
) -> tuple[ast.For, ...] | None:
    """The loops around the call between the readings at ``lines``.

    None where the statements between them may do more than queue work.
    """
    for block in _blocks(scope):
        start, end = (
            next((n for n, node in enumerate(block) if covers(node, line)), None) for line in lines
        )
        if start is None or end is None or start == end:
            continue
        first, last = block[start], block[end]
        if not isinstance(first, _PLAIN) or not isinstance(last, _READING):
            return None
        # The first call that is done in the last statement has to read a clock.
        calls = [node for node in ast.walk(last) if isinstance(node, ast.Call)]
        done = min(calls, key=lambda call: (call.end_lineno, call.end_col_offset), default=None)
        reads = done is not None and _clock(done, import_names(tree)) and done.lineno == lines[1]
        own, between = _Own(call_line, tree), block[start + 1 : end]
        if first.lineno == lines[0] and reads and between and all(map(own.queues, between)):
            return own.found[0] if own.found else None
        return None
    return None


def times_of(loops: Iterable[ast.AST]) -> int | None:
    """How often a statement inside all of ``loops`` runs; None: the source doesn't say."""
    number = 1
    for loop in loops:
        iterable = loop.iter if isinstance(loop, ast.For) else None
        if not isinstance(iterable, ast.Call) or not _is_range(iterable):
            return None
        bounds: list[Any] = [getattr(argument, "value", None) for argument in iterable.args]
        try:
            times = len(range(*bounds)) if all(type(bound) is int for bound in bounds) else 0
        except (TypeError, ValueError, OverflowError):
            times = 0
        if not times:
            return None
        number *= times
    return number


class _Own:
    """Statements that queue work; ``found``: the loops around each call at the call's line."""

    def __init__(self, call_line: int, tree: ast.Module) -> None:
        self._line = call_line
        imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
        names = (alias.asname or alias.name for node in imports for alias in node.names)
        self._imported = {name.partition(".")[0] for name in names}
        self.found: list[tuple[ast.For, ...]] = []

    def queues(self, node: ast.stmt, loops: tuple[ast.For, ...] = ()) -> bool:
        if isinstance(node, ast.Pass):
            return True
        if _yields(node) and covers(node, self._line):
            self.found.append(loops)
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
            and not (isinstance(call.func, ast.Name) and call.func.id in _OF_CONTAINERS)
        ]
        if not others:
            return True
        if not covers(node, self._line) or len(others) > 1 or self.leads_away(others[0]):
            return False
        self.found.append(loops)
        return True

    def leads_away(self, call: ast.Call) -> bool:
        """Whether it may be a library's function, which calls the compiled code and then waits."""
        root = root_of(call.func)
        return not isinstance(root, ast.Name) or root.id in self._imported


def _blocks(scope: Scope) -> Iterator[list[ast.stmt]]:
    """Every block of statements of a scope; nested functions are not entered."""
    waiting = [scope.body]
    while waiting:
        block = waiting.pop()
        yield block
        for node in block:
            if isinstance(node, Function | ast.ClassDef):
                continue
            waiting.extend(
                inner
                for name in ("body", "orelse", "finalbody")
                if (inner := getattr(node, name, None))
            )
            waiting.extend(handler.body for handler in getattr(node, "handlers", ()))


def _is_range(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return False
    inner = (child for argument in node.args for child in ast.walk(argument))
    return node.func.id == "range" and not any(isinstance(child, ast.Call) for child in inner)


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
            # It stays a duration in another unit, and in the text around it with ``%``.
            other = above.left if above.right is node else above.right
            value = other.value if isinstance(other, ast.Constant) else None
            scaled = isinstance(above.op, ast.Mult | ast.Div) and above.right is not node
            if not (isinstance(value, str) if isinstance(above.op, ast.Mod) else scaled):
                return False
            if scaled and value not in _UNITS:
                return False
        elif isinstance(above, ast.Call):
            name = _called(above)
            if name in _SHOW:
                return True
            if name not in _WRAPPERS:
                return False
        elif isinstance(above, ast.Assign) and not held:
            target = above.targets[0]
            if len(above.targets) > 1 or not isinstance(target, ast.Name):
                return False
            named = (n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == target.id)
            uses = [name for name in named if isinstance(name.ctx, ast.Load)]
            return bool(uses) and all(_ends_shown(scope, parents, use, held=True) for use in uses)
        elif not isinstance(above, _AROUND):
            return False
        node = above
    return False


def _called(node: ast.AST) -> str | None:
    """``no_grad`` of ``torch.no_grad()``; None for what is no call by name."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None

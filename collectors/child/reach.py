"""What of the user's files is still to run: lines that call torch.compile, and loops of steps.

Lines are looked at where a plan is complete and the run could be stopped. One that has run is
ahead only if a loop, or a call that is still to come, leads to it again. One that has not run is
ahead unless the code around it has gone past it. What nothing calls counts as ahead, too: the
driver does not wait for ever.

Of the ``for`` loops around a step, the lengths are read where they can be without running any code
of the user's: ``range`` of names and numbers, lists, a ``DataLoader``, and these in ``enumerate``,
``zip`` or ``tqdm``. How far they have come, their variables say.
"""

from __future__ import annotations

import ast
import math
import operator
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from types import FrameType
from typing import Any

from .frames import Frames, outward

MAX_BYTES = 2_000_000
#: Keyword arguments of torch.compile, and so of nn.Module.compile, which takes no others.
_ARGUMENTS = frozenset({"fullgraph", "dynamic", "backend", "mode", "options", "disable"})
Span = tuple[int, int]


@dataclass
class _Scope:
    """A module's or a function's own code: its loops, its torch.compile calls, names it uses.

    ``branches``: first line of such a call → line of the innermost ``if`` that it stands in.
    """

    name: str
    first: int
    defined: int
    loops: list[Span] = field(default_factory=list)
    compiles: list[Span] = field(default_factory=list)
    branches: dict[int, int] = field(default_factory=dict)
    uses: list[tuple[str, int]] = field(default_factory=list)

    def may_follow(self, line: int, now: int) -> bool:
        """Whether ``line`` can run after ``now`` without this code being entered again."""
        return line > now or any(a <= line <= b and a <= now <= b for a, b in self.loops)


class CompileLines:
    """Reads each of the user's files once, those that have been imported by then."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._files: dict[str, list[_Scope]] = {}

    def found(self, reached: set[tuple[str, int]]) -> Iterator[dict[str, Any]]:
        """File and line of each torch.compile call, whether it ran, and the ``if`` around it."""
        self._read()
        for file, scopes in self._files.items():
            for scope in scopes:
                for first, last in scope.compiles:
                    ran = any((file, line) in reached for line in range(first, last + 1))
                    branch = scope.branches.get(first)
                    yield {"file": file, "line": first, "reached": ran, "branch": branch}

    def ahead(self, reached: set[tuple[str, int]], frame: FrameType) -> bool:
        """Whether one of them may run yet, as seen from ``frame``."""
        self._read()
        stack = [
            (each.f_code.co_filename, scope, each.f_lineno)
            for each in reversed(list(outward(frame)))
            if (scope := self._scope_of(each)) is not None
        ]
        for file, scopes in self._files.items():
            for scope in scopes:
                for first, last in scope.compiles:
                    ran = any((file, line) in reached for line in range(first, last + 1))
                    if _is_ahead(stack, scope, first, ran=ran):
                        return True
        return False

    def _read(self) -> None:
        for module in list(sys.modules.values()):
            # Python takes a script's ``__file__`` away as soon as it has run.
            loader = getattr(module, "__loader__", None)
            file = getattr(module, "__file__", None) or getattr(loader, "path", None)
            if not isinstance(file, str) or file in self._files or not self._frames.is_user(file):
                continue
            tree = _parsed(file, "compile")
            self._files[file] = [] if tree is None else _scopes(tree)

    def _scope_of(self, frame: FrameType) -> _Scope | None:
        code = frame.f_code
        for scope in self._files.get(code.co_filename, ()):
            same = scope.name == code.co_name
            if same and scope.first <= code.co_firstlineno <= scope.defined:
                return scope
        return None


def _parsed(file: str, word: str = "") -> ast.Module | None:
    """A file that ``word`` is in; what can't be read says nothing."""
    try:
        with open(file, encoding="utf-8") as opened:  # noqa: PTH123 - as co_filename is
            text = opened.read(MAX_BYTES)
        return ast.parse(text) if word in text else None
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None


def _is_ahead(stack: list[tuple[str, _Scope, int]], scope: _Scope, line: int, *, ran: bool) -> bool:
    """``stack``: file, code and line of the user's frames, outermost first."""
    depths = [at for at, (_, each, _) in enumerate(stack) if each is scope]
    if not depths:
        # Its function has returned, or was never called; a module's own code runs once.
        if not ran:
            return scope.name != "<module>"
        return any(_calls_again(each, scope.name, now) for _, each, now in stack)
    if scope.may_follow(line, stack[depths[-1]][2]):
        return True
    # Who called it may do so again, in a loop or further down; what a library called, too.
    if stack[0][1].name != "<module>":
        return True
    way = stack[: depths[-1] + 1]
    for (_, caller, now), (_, called, _) in pairwise(way):
        if any(a <= now <= b for a, b in caller.loops) or _calls_again(caller, called.name, now):
            return True
    return False


def _calls_again(scope: _Scope, name: str, now: int) -> bool:
    return any(used == name and scope.may_follow(line, now) for used, line in scope.uses)


def _scopes(tree: ast.Module) -> list[_Scope]:
    """Every function of a file and the module itself."""
    torch_names, compile_names = {"torch"}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            torch_names |= {each.asname or each.name for each in node.names if each.name == "torch"}
        elif isinstance(node, ast.ImportFrom) and node.module == "torch":
            named = (each.asname or each.name for each in node.names if each.name == "compile")
            compile_names |= set(named)

    def is_torch_compile(node: ast.AST) -> bool:
        if isinstance(node, ast.Name):
            return node.id in compile_names
        owner = node.value if isinstance(node, ast.Attribute) and node.attr == "compile" else None
        return isinstance(owner, ast.Name) and owner.id in torch_names

    def compiles(node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        if is_torch_compile(node.func):
            return True
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr == "compile"
        known = all(each.arg in _ARGUMENTS for each in node.keywords)
        return is_method and not node.args and known

    found = [_Scope("<module>", 0, 1)]

    def visit(node: ast.AST, scope: _Scope, branch: int | None = None) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            for each in node.decorator_list:  # run where the function is defined
                if is_torch_compile(each):
                    scope.compiles.append((each.lineno, each.end_lineno or each.lineno))
                visit(each, scope)
            for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
                visit(default, scope)
            inner = _Scope(node.name, first, node.lineno)
            found.append(inner)
            for statement in node.body:
                visit(statement, inner)
            return
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.DictComp)):
            scope.loops.append((node.lineno, node.end_lineno or node.lineno))
        elif isinstance(node, (ast.Name, ast.Attribute)):
            name = node.id if isinstance(node, ast.Name) else node.attr
            scope.uses.append((name, node.lineno))
        elif compiles(node):
            scope.compiles.append((node.lineno, node.end_lineno or node.lineno))  # type: ignore[attr-defined]
            if branch is not None:
                scope.branches[node.lineno] = branch  # type: ignore[attr-defined]
        elif isinstance(node, ast.If) and "__name__" not in ast.dump(node.test):
            branch = node.lineno
        for child in ast.iter_child_nodes(node):
            visit(child, scope, branch)

    for statement in tree.body:
        visit(statement, found[0])
    return [scope for scope in found if scope.compiles or scope.loops or scope.uses]


@dataclass(frozen=True)
class _Loop:
    """A ``for`` loop that runs: its length and how many times it has come round, where known."""

    file: str
    line: int
    length: int | None
    done: int | None


class Loops:
    """The length of the job in steps, from two looks at the loops around one."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._trees: dict[str, ast.Module | None] = {}
        self._before: tuple[int, list[_Loop]] = (0, [])

    def look(self, step: int) -> dict[str, Any] | None:
        """``steps`` of the job, and ``file`` and ``line`` of its outermost loop; None: unknown."""
        before, first = self._before
        loops = [
            loop
            for frame in reversed(list(outward(sys._getframe(1))))
            if self._frames.is_user(frame.f_code.co_filename)
            for loop in self._around(frame)
        ]
        self._before = step, loops
        same = [(each.file, each.line) for each in loops] == [(e.file, e.line) for e in first]
        if not loops or not same:
            return None
        counted = takewhile(
            lambda pair: pair[1].length and pair[1].done is not None, zip(first, loops, strict=True)
        )
        whole, done, earlier = 1, 0, 0
        for then, now in counted:
            whole, done = whole * now.length, done * now.length + now.done  # type: ignore[operator]
            earlier = earlier * now.length + (then.done or 0)  # type: ignore[operator]
        steps: int | None = None
        if done > earlier:  # the rounds to come at the rate of those between two looks
            steps = round(step + (step - before) / (done - earlier) * (whole - done))
        elif None not in (lengths := [loop.length for loop in loops]):
            steps = math.prod(lengths)  # type: ignore[arg-type]
        if steps is None or steps < step:
            return None
        return {"steps": steps, "file": loops[0].file, "line": loops[0].line}

    def _around(self, frame: FrameType) -> Iterator[_Loop]:
        """The loops of a function that runs, outermost first."""
        code, line = frame.f_code, frame.f_lineno
        node: ast.AST | None = self._tree(code.co_filename)
        name, loops = "<module>", list[ast.For | ast.While]()
        while node is not None:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name, loops = node.name, []
            elif isinstance(node, (ast.For, ast.While)) and _spans(node.body, line):
                loops.append(node)
            inner = (each for each in ast.iter_child_nodes(node) if _spans([each], line))
            node = next(inner, None)
        if name != code.co_name:
            return  # a lambda or a comprehension: the loops are its caller's
        for loop in loops:
            length = done = None
            if isinstance(loop, ast.For):
                with suppress(
                    TypeError, ValueError, LookupError, AttributeError, ZeroDivisionError
                ):
                    length, done = _length(loop.iter, frame), _rounds(loop.iter, loop.target, frame)
            yield _Loop(code.co_filename, loop.lineno, length, done)

    def _tree(self, file: str) -> ast.Module | None:
        if file not in self._trees:
            self._trees[file] = _parsed(file)
        return self._trees[file]


def _spans(nodes: list[Any], line: int) -> bool:
    """Whether ``line`` is within these statements."""
    first, last = getattr(nodes[0], "lineno", None), getattr(nodes[-1], "end_lineno", None)
    return first is not None and last is not None and first <= line <= last


_WRAPPERS = ("enumerate", "tqdm", "reversed", "sorted", "list", "iter")
_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def _rounds(over: ast.expr, counter: ast.expr, frame: FrameType) -> int | None:
    """By the variable that ``range`` or ``enumerate`` counts in; None where there is none."""
    if not isinstance(over, ast.Call) or not over.args:
        return None
    name = _named(over)
    if name == "enumerate" and isinstance(counter, ast.Tuple):
        start = _whole(over.args[1], frame) if len(over.args) > 1 else 0
        return _whole(counter.elts[0], frame) - start
    if name in ("range", "trange"):
        bounds = [_whole(each, frame) for each in over.args]
        start, step = bounds[0] if len(bounds) > 1 else 0, bounds[2] if len(bounds) > 2 else 1
        return (_whole(counter, frame) - start) // step
    return _rounds(over.args[0], counter, frame) if name in _WRAPPERS else None


def _named(call: ast.Call) -> str | None:
    return getattr(call.func, "id", getattr(call.func, "attr", None))


def _length(node: ast.expr, frame: FrameType) -> int:
    """How many items; a LookupError where that can't be read."""
    if isinstance(node, ast.Call):
        name = _named(node)
        if name in ("range", "trange"):
            return len(range(*(_whole(each, frame) for each in node.args)))
        if name == "zip":
            return min(_length(each, frame) for each in node.args)
        if name in _WRAPPERS:
            return _length(node.args[0], frame)
        raise LookupError
    found = _value(node, frame)
    is_loader = type(found).__module__.startswith("torch.utils.data")
    if isinstance(found, (list, tuple, dict, range)) or is_loader:
        return len(found)
    raise LookupError


def _whole(node: ast.expr, frame: FrameType) -> int:
    """A whole number; a LookupError for anything else, whose own code would have to run."""
    found = _value(node, frame)
    if type(found) is not int:
        raise LookupError
    return found


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What an expression is, by reading names and attributes alone; a LookupError otherwise."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return ast.literal_eval(node)
    if isinstance(node, ast.Name):
        local = frame.f_locals
        return local[node.id] if node.id in local else frame.f_globals[node.id]
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, frame)
        return {**vars(type(owner)), **vars(owner)}[node.attr]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_whole(node.left, frame), _whole(node.right, frame))
    if isinstance(node, ast.Call) and _named(node) == "len" and len(node.args) == 1:
        return _length(node.args[0], frame)
    raise LookupError

"""Lines of the user's files that call torch.compile: which of them can still run.

A static look, made where a plan is complete and the run could be stopped. A line that has run is
ahead only if a loop, or a call that is still to come, leads to it again. One that has not run is
ahead unless the code around it has gone past it. What nothing calls counts as ahead, too: the
driver does not wait for ever.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from types import FrameType

from .frames import Frames, outward

MAX_BYTES = 2_000_000
#: Keyword arguments of torch.compile, and so of nn.Module.compile, which takes no others.
_ARGUMENTS = frozenset({"fullgraph", "dynamic", "backend", "mode", "options", "disable"})
Span = tuple[int, int]


@dataclass
class _Scope:
    """A module's or a function's own code: its loops, its torch.compile calls, names it uses."""

    name: str
    first: int
    defined: int
    loops: list[Span] = field(default_factory=list)
    compiles: list[Span] = field(default_factory=list)
    uses: list[tuple[str, int]] = field(default_factory=list)

    def may_follow(self, line: int, now: int) -> bool:
        """Whether ``line`` can run after ``now`` without this code being entered again."""
        return line > now or any(a <= line <= b and a <= now <= b for a, b in self.loops)


class CompileLines:
    """Reads each of the user's files once, those that have been imported by then."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._files: dict[str, list[_Scope]] = {}

    def found(self, reached: set[tuple[str, int]]) -> Iterator[tuple[str, int, bool]]:
        """File and line of each torch.compile call, and whether it has run."""
        self._read()
        for file, scopes in self._files.items():
            for scope in scopes:
                for first, last in scope.compiles:
                    ran = any((file, line) in reached for line in range(first, last + 1))
                    yield file, first, ran

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
            file = getattr(module, "__file__", None)
            if not isinstance(file, str) or file in self._files or not self._frames.is_user(file):
                continue
            self._files[file] = []
            try:
                with open(file, encoding="utf-8") as opened:  # noqa: PTH123 - as co_filename is
                    text = opened.read(MAX_BYTES)
                if "compile" in text:
                    self._files[file] = _scopes(ast.parse(text))
            except (OSError, ValueError, SyntaxError, RecursionError):
                continue  # what can't be read says nothing

    def _scope_of(self, frame: FrameType) -> _Scope | None:
        code = frame.f_code
        for scope in self._files.get(code.co_filename, ()):
            same = scope.name == code.co_name
            if same and scope.first <= code.co_firstlineno <= scope.defined:
                return scope
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

    def visit(node: ast.AST, scope: _Scope) -> None:
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
        for child in ast.iter_child_nodes(node):
            visit(child, scope)

    for statement in tree.body:
        visit(statement, found[0])
    return [scope for scope in found if scope.compiles or scope.loops or scope.uses]

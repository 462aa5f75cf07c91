"""One of the user's files, and changes of it that keep the rest of its text as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from textwrap import dedent, indent
from typing import TypeVar

from traceview.derive.syntax import covers, syntax_tree

#: Bytes from one place to another, and the text that takes their place.
Change = tuple[int, int, str]
#: Ways to change a source, each by changes that belong together.
Changes = Iterator[list[Change]]
Function = ast.FunctionDef
Node = TypeVar("Node", bound=ast.AST)
Statement = TypeVar("Statement", bound=ast.stmt)
STEP = "    "
#: Calls that only work out a result, of builtins and of values.
PURE = frozenset(
    [
        *("abs", "all", "any", "bool", "chr", "dict", "divmod", "enumerate", "float", "int"),
        *("isinstance", "len", "list", "map", "max", "min", "ord", "range", "reversed", "round"),
        *("set", "sorted", "str", "sum", "tuple", "zip"),
    ]
)
#: Functions that draw random numbers.
DRAWS = frozenset(["bernoulli", "multinomial", "normal", "rand", "randint", "randn", "randperm"])
#: Operators of ``x += y`` that are the same in ``x = x + y``.
SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
#: What can be added to, or called on, as it stands.
SIMPLE = (ast.Attribute, ast.Call, ast.Constant, ast.Name, ast.Subscript)


class Source:
    """A text with its tree. Places are bytes, as those of the tree are."""

    def __init__(self, text: str) -> None:
        self._data = text.encode()
        # Python ends lines at a lone \r as well, and a change would mix their ends.
        self.tree = (None if "\r" in text else syntax_tree(text)) or ast.Module([], [])
        self._starts = [0]
        for line in self._data.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All of them."""
        return list(ast.walk(self.tree))

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node's parent."""
        return {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def globals(self) -> set[str]:
        """Names that statements of the module set, outside of functions and classes."""
        return stored(
            each
            for node in self.tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for each in (node.targets if isinstance(node, ast.Assign) else [node.target])
        )

    def all(self, kind: type[Node]) -> list[Node]:
        """Nodes of this kind."""
        return [node for node in self.nodes if isinstance(node, kind)]

    def at(self, line: int, kind: type[Statement]) -> Statement | None:
        """The innermost statement of that kind at ``line``; of one with a block, its head."""
        found = []
        for node in self.all(kind):
            block = [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
            if covers(node, line) and not any(covers(each, line) for each in block):
                found.append(node)
        return max(found, key=lambda node: node.lineno, default=None)

    def called_at(self, line: int) -> set[str]:
        """What the calls that begin in that line call."""
        return {called(node) for node in self.all(ast.Call) if node.lineno == line}

    def variables(self) -> Iterator[tuple[ast.Assign, str]]:
        """Statements that set ``os.environ["NAME"]``, and the name."""
        for node in self.all(ast.Assign):
            target = node.targets[0]
            if isinstance(target, ast.Subscript) and dotted(target.value) == "os.environ":
                yield node, str(getattr(target.slice, "value", ""))

    def removed(self, node: ast.stmt) -> Change:
        """The statement goes; where its block or its line needs one, ``pass`` takes its place."""
        others = len(getattr(self.parents[node], "body", [])) > 1 and self.alone([node])
        return (*self.lines([node]), "") if others else (*self.span(node), "pass")

    def function_at(self, line: int) -> Function | None:
        """The innermost one around ``line``."""
        around = (each for each in self.all(Function) if covers(each, line))
        return max(around, key=lambda each: each.lineno, default=None)

    def owner(self, node: ast.AST) -> Function | None:
        """The function that ``node`` is in."""
        above = self.parents.get(node)
        while above is not None and not isinstance(above, Function):
            above = self.parents.get(above)
        return above

    def values(self, name: str, function: Function | None) -> list[ast.expr]:
        """What assignments in ``function`` give to ``name``, those to several names as well."""
        found = []
        for node in self.all(ast.Assign):
            for target in node.targets if self.owner(node) is function else ():
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                found += [value for each, value in pairs if dotted(each) == name]
        return found

    def class_of(self, function: Function) -> ast.ClassDef | None:
        """The class whose method it is."""
        above = self.parents.get(function)
        return above if isinstance(above, ast.ClassDef) else None

    def top(self, node: ast.AST) -> int:
        """Where the statement of the module begins that ``node`` is in."""
        whole = next(each for each in self.tree.body if node in ast.walk(each))
        return self.lines([whole])[0]

    def of(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """Its text."""
        begin, end = self.span(node)
        return self._data[begin:end].decode()

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        """Where it begins and ends; a function's decorators are not in it."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        begin = self._starts[node.lineno - 1] + node.col_offset
        return begin, self._starts[end_line - 1] + end_column

    def line_of(self, place: int) -> int:
        """The number of the line of a place."""
        return 1 + self._data[:place].count(b"\n")

    def argument(self, call: ast.Call, text: str) -> Change:
        """One more argument, behind the others that ``call`` has."""
        others: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        end = max(self.span(each)[1] for each in others)
        return end, end, f", {text}"

    def lines(self, nodes: Sequence[ast.stmt | ast.expr]) -> tuple[int, int]:
        """From the begin of the first one's first line, decorators and all, to the last one's end.

        The end of its line is in it.
        """
        heads = getattr(nodes[0], "decorator_list", None) or nodes
        last = max(node.end_lineno or node.lineno for node in nodes)
        return self._starts[heads[0].lineno - 1], min(self._starts[last], len(self._data))

    def indent(self, node: ast.stmt | ast.expr) -> str:
        """What its line begins with."""
        begin = self._starts[node.lineno - 1]
        line = self._data[begin : self._starts[node.lineno]].decode()
        return line[: len(line) - len(line.lstrip())]

    def alone(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether their lines hold nothing else, comments apart, and no text of several lines."""
        begin, end = self.lines(statements)
        own = syntax_tree(dedent(self._data[begin:end].decode()))
        texts = (
            node
            for each in statements
            for node in ast.walk(each)
            if isinstance(node, ast.Constant | ast.JoinedStr)
        )
        return (
            own is not None
            and [*map(ast.dump, own.body)] == [*map(ast.dump, statements)]
            and all(node.lineno == node.end_lineno for node in texts)
        )

    def text(self, statements: Sequence[ast.stmt], prefix: str, *changes: Change) -> str:
        """Their lines, with the changes, at another depth."""
        begin, end = self.lines(statements)
        moved = [(a - begin, b - begin, new) for a, b, new in changes]
        return indent(dedent(_applied(self._data[begin:end], moved)), prefix)

    def changed(self, changes: Iterable[Change]) -> str | None:
        """The whole text with them; None where that is no Python or the same."""
        text = _applied(self._data, changes)
        if text == self._data.decode() or syntax_tree(text) is None:
            return None
        return text

    # -- what runs compiled ----------------------------------------------------------------------

    def imports(self, module: str) -> bool:
        """Whether the name ``module`` is that module."""
        return any(
            each.name.partition(".")[0] == module and each.asname is None
            for node in self.tree.body
            if isinstance(node, ast.Import)
            for each in node.names
        )

    def importing(self, module: str) -> list[Change]:
        """What imports ``module``, where the file does not."""
        if self.imports(module):
            return []
        plain = (
            node
            for node in self.tree.body
            if isinstance(node, ast.Import)
            or (isinstance(node, ast.ImportFrom) and node.module != "__future__")
        )
        place = next(plain, None)
        at = self.lines([place])[0] if place else 0
        return [(at, at, f"import {module}\n")]

    def compile_calls(self) -> list[ast.Call]:
        """Calls of ``torch.compile``."""
        return [call for call in self.all(ast.Call) if dotted(call.func) == "torch.compile"]

    def compiling(self, function: Function) -> list[ast.expr]:
        """Its decorators ``@torch.compile``."""
        return [each for each in function.decorator_list if called(each) == "torch.compile"]

    def is_entry(self, function: Function) -> bool:
        """Whether torch.compile gets it, or an object of its class, by the names in the file."""
        return bool(self.compiling(function)) or self._compile_call(function) is not None

    def compiled_with(self, name: str) -> str | None:
        """Arguments with which torch.compile makes what has this name; None: it does not.

        Or some of them are no constants.
        """
        found = [mark for each in self.all(Function) if each.name == name
                 for mark in self.compiling(each)]  # fmt: skip
        for call in self.compile_calls():
            above = self.parents[call]
            if isinstance(above, ast.Assign) and [dotted(each) for each in above.targets] == [name]:
                found.append(call)
        keywords = [each for made in found for each in getattr(made, "keywords", ())]
        if len(found) != 1 or not all(isinstance(k.value, ast.Constant) for k in keywords):
            return None
        return ", ".join(self.of(each) for each in keywords)

    def _compile_call(self, function: Function) -> ast.Call | None:
        """The call of torch.compile that gets it, or an object of its class."""
        owner = self.class_of(function)
        wanted = {function.name} | ({owner.name} if owner else set())
        for call in self.compile_calls():
            named = _names(call.args)
            made = (
                node.value
                for node in self.all(ast.Assign)
                if not named.isdisjoint(_names(node.targets)) and node.value is not call
            )
            if not wanted.isdisjoint(named | _names(made)):
                entered = owner is None or function.name in ("forward", "__call__", *named)
                return call if entered else None
        return None

    # -- what a function reads and writes --------------------------------------------------------

    def parameters(self, function: Function) -> list[str] | None:
        """Names of its parameters; None where they are more than plain ones."""
        given = function.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
            return None
        return [each.arg for each in given.args]

    def outlined(
        self, function: Function, region: Sequence[ast.stmt], result: str, call: str
    ) -> list[Change] | None:
        """``region`` of ``function`` as a function of its own, which is what is compiled.

        It returns ``result``; ``call`` is the statement in its place, with ``{}`` for the call.
        None where the names that it reads can't be handed over.
        """
        parameters, handed = self.parameters(function), self.handed_on(function)
        if parameters is None or handed is None or not region or not self.alone(region):
            return None
        before = set(parameters) | stored(
            node
            for node in ast.walk(function)
            if isinstance(node, ast.expr) and node.lineno < region[0].lineno
        )
        own = "self" in parameters[:1]
        read = {n for n in loaded([*region, ast.parse(result)]) if n in before} - {"self"}
        given = sorted(read, key=lambda name: (name not in parameters, name))
        name = f"_{function.name.strip('_')}_compiled"
        if name in self._data.decode():
            return None
        pad, deeper = self.indent(function), self.indent(function) + STEP
        heads = "".join(f"{pad}@{mark}\n" for mark in handed[0])
        head = f"def {name}({', '.join((['self'] if own else []) + given)}):\n"
        body = self.text(region, deeper)
        gap = "\n" if own or pad else "\n\n"
        made = f"{heads}{pad}{head}{body}{deeper}return {result}\n{gap}"
        at = self.lines([function])[0]
        there = self.lines(region)
        filled = call.format(f"{'self.' if own else ''}{name}({', '.join(given)})")
        changes = [(at, at, made), (*there, f"{self.indent(region[0])}{filled}\n")]
        return changes + handed[1]

    def handed_on(self, function: Function) -> tuple[list[str], list[Change]] | None:
        """What compiles another function instead of ``function``: its decorators, and changes here.

        A module's forward runs in Python, and what it calls compiled. (With ``recursive=False`` it
        could do so unmarked, but torch then looks at its frame again in each call, for 0.15 ms.)
        None: it is not clear how.
        """
        if marks := self.compiling(function):
            return [self.of(each) for each in marks], [(*self.lines([each]), "") for each in marks]
        named = [
            call
            for call in self.compile_calls()
            if call.args and dotted(call.args[0]).rpartition(".")[2] == function.name
        ]
        whole = self._compile_call(function) if self.class_of(function) and not named else None
        calls = [whole] if whole else named
        if len(calls) != 1 or not all(isinstance(k.value, ast.Constant) for k in calls[0].keywords):
            return None
        given = ", ".join(self.of(each) for each in calls[0].keywords)
        mark = f"torch.compile({given})" if given else "torch.compile"
        if whole:
            at = self.span(function)[0]
            return [mark], [(at, at, f"@torch.compiler.disable\n{self.indent(function)}")]
        return [mark], [(*self.span(named[0]), self.of(named[0].args[0]))]


def _applied(data: bytes, changes: Iterable[Change]) -> str:
    made, at = [], 0
    for begin, end, new in sorted(changes, key=lambda change: change[:2]):
        made += [data[at:begin], new.encode()]
        at = end
    return b"".join([*made, data[at:]]).decode()


def dotted(node: ast.AST | None) -> str:
    """``a.b.c``; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return owner and f"{owner}.{node.attr}"
    return ""


def called(node: ast.AST | None) -> str:
    """The name of what is called, or named, by an expression."""
    return dotted(node.func if isinstance(node, ast.Call) else node)


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names and attributes in them."""
    found = {node for each in nodes for node in ast.walk(each)}
    names = {node.id for node in found if isinstance(node, ast.Name)}
    return names | {node.attr for node in found if isinstance(node, ast.Attribute)}


def loaded(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that they read."""
    return _by_use(nodes, ast.Load)


def stored(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that they set."""
    return _by_use(nodes, ast.Store)


def _by_use(nodes: Iterable[ast.AST], use: type[ast.expr_context]) -> set[str]:
    return {
        node.id
        for each in nodes
        for node in ast.walk(each)
        if isinstance(node, ast.Name) and isinstance(node.ctx, use)
    }

"""Graphs cut into pieces, of which a backend compiles some, and compilers with parts left out.

Dynamo hands the graphs of a callable over one after the other. Their operators are counted through,
so that a search can ask for any range of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Compiled = Callable[..., Any]
Backend = Callable[[Any, Sequence[Any]], Compiled]

#: Namespaces of operators that torch comes with.
TORCHS = ("aten", "prims", "prim")
LOWERINGS, DECOMPOSITIONS = "lowerings", "decomposition"
#: Parts that torch's bisector can leave out, in the order in which they are tried.
PARTS = ("pre_grad_passes", "joint_graph_passes", "post_grad_passes", DECOMPOSITIONS, LOWERINGS)
_CALLS = ("call_function", "call_method", "call_module")
_ENTER, _EXIT, _GRAD = "_enter_autocast", "_exit_autocast", "_set_grad_enabled"


@dataclass(frozen=True)
class Piece:
    """A part of a graph as a graph module, and the nodes around that it reads and gives."""

    module: Any
    operators: tuple[Any, ...]
    nodes: tuple[Any, ...]
    reads: tuple[Any, ...]
    gives: tuple[Any, ...]


class Pieces:
    """A backend for torch.compile: ``inner`` compiles the operators from ``first`` up to ``last``.

    ``operators`` names those seen. A piece's arguments go to ``keep``, if there is one.
    """

    def __init__(
        self,
        torch: Any,
        inner: Backend,
        first: int = 0,
        last: int | None = None,
        keep: Callable[[Piece, Sequence[Any]], None] | None = None,
    ) -> None:
        self._torch, self._inner, self._keep = torch, inner, keep
        self._first, self._last = first, last
        self.operators: list[str] = []
        self.__name__ = "pieces"

    def __call__(self, module: Any, inputs: Sequence[Any], **_options: Any) -> Compiled:
        nodes = list(module.graph.nodes)
        cuts = cut_points(nodes, self._torch)
        begin = len(self.operators)
        self.operators += [operator_name(nodes[at].target, self._torch) for at in cuts]
        end = len(self.operators)
        first, last = max(self._first, begin), end if self._last is None else min(self._last, end)
        if first >= last:
            return module.forward  # type: ignore[no-any-return]
        if (first, last) == (begin, end) and self._keep is None:
            return self._inner(module, inputs)
        start = cuts[first - begin]
        stop = cuts[last - begin] if last < end else len(nodes) - 1
        operators = tuple(nodes[at] for at in cuts[first - begin : last - begin])
        # The backend may change what it is given.
        piece, given = (
            piece_of(module, nodes, start, stop, operators, self._torch) for _ in range(2)
        )
        examples = [node.meta.get("example_value") for node in piece.reads]
        return self._around(module, piece, self._inner(given.module, examples))

    def reset(self) -> None:
        """With Dynamo: Inductor lets go of its cudagraphs then."""
        getattr(self._inner, "reset", lambda: None)()

    def _around(self, module: Any, piece: Piece, compiled: Compiled) -> Compiled:
        """The whole graph, with what is compiled in the place of the piece."""
        keep = self._keep
        done = [each for each in piece.nodes if each.op != "get_attr" and not _is_state(each)]

        class Run(self._torch.fx.Interpreter):  # type: ignore[misc, name-defined]
            def run_node(self, node: Any) -> Any:
                if node is not done[0]:
                    return super().run_node(node)
                given = [self.env[each] for each in piece.reads]
                if keep is not None:
                    keep(piece, given)
                found = compiled(*given)
                self.env.update(dict.fromkeys(done))
                self.env.update(zip(piece.gives, found, strict=True))
                return self.env[node]

        def run(*args: Any) -> Any:
            interpreter = Run(module, garbage_collect_values=False)
            interpreter.extra_traceback = False
            return interpreter.run(*args, enable_io_processing=False)

        return run


def cut_points(nodes: Sequence[Any], torch: Any) -> list[int]:
    """Places of the operators before which a graph can be cut: only tensors and sizes cross.

    An operator that is none belongs to the one before it, as ``getitem`` does.
    """
    last_use: dict[Any, int] = {}
    for place, node in enumerate(nodes):
        last_use.update(dict.fromkeys(node.all_input_nodes, place))
    found: list[int] = []
    alive: set[Any] = set()
    for place, node in enumerate(nodes):
        alive = {each for each in alive if last_use[each] >= place}
        if node.op in _CALLS and not _is_state(node) and not alive:
            found.append(place)
        crosses = node.op in ("placeholder", "get_attr") or _is_state(node)
        value = node.meta.get("example_value")
        if not crosses and not isinstance(value, (torch.Tensor, torch.SymInt)) and node.users:
            alive.add(node)
    if not found:
        found = [place for place, node in enumerate(nodes) if node.op in _CALLS][:1]
    return found


def piece_of(
    module: Any, nodes: Sequence[Any], start: int, stop: int, operators: tuple[Any, ...], torch: Any
) -> Piece:
    """The nodes from ``start`` up to ``stop``, under the autocast and gradient mode around them."""
    while _is_state(nodes[stop - 1]) or nodes[stop - 1].op == "get_attr":
        stop -= 1
    inside = [node for node in nodes[start:stop] if node.op != "placeholder"]
    sizes = {  # symbolic ones, which the graph is given
        node
        for node in nodes[:start]
        if node.op == "placeholder" and isinstance(node.meta.get("example_value"), torch.SymInt)
    }
    reads = [
        node
        for node in nodes[:start]
        if node.op != "get_attr"
        and (any(user in inside for user in node.users) or node in sizes)
        and not _is_state(node)
    ]
    gives = [node for node in inside if any(user not in inside for user in node.users)]
    gives = [node for node in gives if not _is_state(node) and node.op != "get_attr"]
    graph = torch.fx.Graph()
    new: dict[Any, Any] = {}
    for node in reads:
        new[node] = graph.placeholder(node.name)
        new[node].meta = dict(node.meta)
    for node in nodes[:start]:
        if node.op == "get_attr" and any(user in inside for user in node.users):
            new[node] = graph.node_copy(node)
    usual = torch.is_grad_enabled()
    before = [each for each in _states(nodes[:start]) if each.args[:1] != (usual,)]
    for node in (*before, *inside):
        new[node] = graph.node_copy(node, lambda known: new[known])
    for node in reversed(_states(nodes[:stop])):
        if _name(node) == _ENTER:  # the graph around enters it, too
            graph.call_function(torch.amp.autocast_mode._exit_autocast, (new[node],))
    graph.output(tuple(new[node] for node in gives))
    made = torch.fx.GraphModule(module, graph, "Piece")
    return Piece(made, operators, tuple(inside), tuple(reads), tuple(gives))


def _states(nodes: Sequence[Any]) -> list[Any]:
    """What is in force after these nodes: entered autocasts, and the last gradient mode."""
    entered: list[Any] = []
    mode: Any = None
    for node in nodes:
        if _name(node) == _ENTER:
            entered.append(node)
        elif _name(node) == _EXIT:
            entered.remove(node.args[0])
        elif _name(node) == _GRAD:
            mode = node
    return entered + ([mode] if mode is not None else [])


def _name(node: Any) -> str:
    return getattr(node.target, "__name__", "") if node.op == "call_function" else ""


def _is_state(node: Any) -> bool:
    return _name(node) in (_ENTER, _EXIT, _GRAD)


# -- compilers -------------------------------------------------------------------------------------


def backend_of(torch: Any, rung: Any, how: Mapping[str, Any]) -> Backend:
    """What torch.compile makes of these arguments, as a function of a graph and its inputs."""
    mode, options, dynamic = (how.get(name) for name in ("mode", "options", "dynamic"))
    if rung == "inductor":
        return torch._TorchCompileInductorWrapper(mode, options, dynamic)  # type: ignore[no-any-return]
    return torch._TorchCompileWrapper(rung, mode, options, dynamic)  # type: ignore[no-any-return]


class Switches:
    """Leaves out parts of the compiler where torch's own bisector asks whether to.

    ``seen``: by (kind, name), the graph's node and operator where there are, and the direction.
    Nothing is written, and torch's caches of compiled graphs are passed over.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.seen: dict[tuple[str, str], tuple[Any, Any, str | None]] = {}
        self._off: set[tuple[str, Any]] = set()

    @contextmanager
    def on(self, off: set[tuple[str, Any]] | None = None) -> Iterator[None]:
        """Look, and leave out these: kinds with a name, or with an operator."""
        try:
            from torch._inductor.compiler_bisector import CompilerBisector
        except ImportError:  # a torch without it
            yield
            return
        plain = CompilerBisector.__dict__["disable_subsystem"]
        enabled = CompilerBisector.bisection_enabled
        self._off = off or set()
        CompilerBisector.disable_subsystem = self._asked
        CompilerBisector.bisection_enabled = True
        try:
            yield
        finally:
            CompilerBisector.disable_subsystem = plain
            CompilerBisector.bisection_enabled = enabled

    def _asked(self, _backend: str, kind: str, info: Callable[[], str] | None = None) -> bool:
        if kind not in PARTS or info is None:
            return False
        node = op = graph = None
        key = info()
        if kind == LOWERINGS:
            lowered = self._torch._inductor.virtualized.V.graph
            node = lowered.current_node
            op, graph = node.target, "backward" if lowered.is_backward else "forward"
            key = f"{graph} {key}"
        elif kind == DECOMPOSITIONS:
            # Such as <OpOverload(op='aten.gelu', overload='default')>.
            if named := re.search(r"op='(\w+)\.(\w+)', overload='(\w+)'", key):
                space = getattr(self._torch.ops, named[1])
                op = getattr(getattr(space, named[2], None), named[3], None)
            key = str(op or key)
            if self._torch._C._current_autograd_node() is not None:
                graph = "backward"
        self.seen.setdefault((kind, key), (node, op, graph))
        return (kind, key) in self._off or (op is not None and (kind, op) in self._off)


# -- names -----------------------------------------------------------------------------------------


def operator_name(target: Any, torch: Any) -> str:
    """``aten.sigmoid``, ``shop.halve``: of a node's target, where torch has such an operator."""
    name = str(target)
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return name.removesuffix(".default")
    if isinstance(target, torch._ops.HigherOrderOperator):
        return target.name()  # type: ignore[no-any-return]
    plain = target if isinstance(target, str) else getattr(target, "__name__", name)
    plain = _PYTHONS.get(plain.strip("_"), plain)
    for each in (plain, plain.strip("_"), f"{plain}_"):
        if hasattr(torch.ops.aten, each):
            return f"aten.{each}"
    return plain


#: Operators of Python's that torch has by another name.
_PYTHONS: Mapping[str, str] = {
    "truediv": "div", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "invert": "bitwise_not", "mod": "remainder", "floordiv": "floor_divide", "getitem": "select",
    "setitem": "copy_",
}  # fmt: skip


def module_name(path: str) -> str:
    """``0.attn`` of ``L['self']._modules['0'].attn``; ``self`` of the module itself."""
    plain = re.sub(r"\._modules\['([^']*)'\]|\['([^']*)'\]", r".\1\2", path)
    plain = re.sub(r"^[LG]\.", "", plain)
    return re.sub(r"^(self|fn)\.", "", f"{plain}.").rstrip(".") or "self"


def definition(function: Any) -> tuple[str, int] | None:
    """File and line of what a function was made from."""
    for _ in range(16):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        if inner is None:
            break
        function = inner
    code = getattr(getattr(function, "__call__", None), "__code__", None)  # noqa: B004
    code = getattr(function, "__code__", code)
    return (code.co_filename, code.co_firstlineno) if code is not None else None


def operator_function(torch: Any, name: str) -> Any:
    """The user's function of a custom operator ``shop.halve``; None where it isn't one."""
    known = getattr(torch._library.custom_ops, "OPDEFS", {})
    found = known.get(name.replace(".", "::", 1))
    return getattr(found, "_init_fn", None)


def kernel_of(operator: str, modules: Sequence[str]) -> str | None:
    """The generated kernel that computes an operator, by the names that Inductor gives them."""
    plain = operator.partition(".")[2].partition(".")[0].strip("_")
    names = [name for text in modules for name in re.findall(r"^(\w+) = async_compile", text, re.M)]
    return next(
        (name for name in names if f"_{plain}_" in name), names[0] if len(names) == 1 else None
    )

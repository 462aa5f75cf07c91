"""FX graphs as torch prints them (``print_readable``, torch/fx/graph.py), read as text.

    class GraphModule(torch.nn.Module):
        def forward(self, L_x_: "f32[8, 4][4, 1]cuda:0", L_y_: "f32[8, 4][4, 1]cuda:0"):
            # File: /home/me/train.py:7 in forward, code: y = x.sin() + 1
            sin: "f32[8, 4][4, 1]cuda:0" = torch.ops.aten.sin.default(L_x_);  L_x_ = None
            add: "f32[8, 4][4, 1]cuda:0" = sin + 1;  sin = None

            # File: /home/me/train.py:8 in forward, code: y += other
            add += L_y_;  iadd: "f32[8, 4][4, 1]cuda:0" = add;  add = L_y_ = None
            return (iadd,)

A comment names the place of the nodes below it, up to the next empty line. The annotation is dtype,
sizes, strides and device; what is set to None after ``;`` is freed. Graphs inside a graph (of
higher-order operators) are printed below it, as classes of their own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import NamedTuple

from traceview.torchtext.dtypes import dtype_of, size_of
from traceview.torchtext.frames import is_user_file

#: Operators whose result shares its input's memory: their schema returns an alias and writes none,
#: and ``_unsafe_view``, whose schema keeps that from autograd.
_VIEWS = """
    _conj _neg_view _reshape_alias _unsafe_view adjoint alias as_strided broadcast_to chunk conj
    detach diagonal dsplit expand expand_as flatten hsplit imag lift_fresh linalg_diagonal mH mT
    matrix_H moveaxis movedim narrow numpy_T permute positive ravel real reshape reshape_as select
    slice split split_with_sizes squeeze swapaxes swapdims t tensor_split transpose unbind unflatten
    unfold unsqueeze view view_as view_as_complex view_as_real vsplit
"""
VIEWS = frozenset(f"aten.{name}" for name in _VIEWS.split())
#: The same as methods and functions of Dynamo's graph have it.
VIEW_WORDS = frozenset(_VIEWS.split())
#: Attention, as the user's code and Dynamo's graph call it.
ATTENTION = "scaled_dot_product_attention"
#: The ``op`` of a node that takes one of several results: ``var_mean[0]``.
ITEM = "getitem"
_CALLED = re.compile(r'(?m)^[^\S\n]*(\w+)(?: *: *"[^"\n]*")? = torch\.ops\.(\w+)\.(\w+)')
#: Functions of torch.nn.functional with an argument ``training`` → layer, and a call with it: a
#: dropout that drops, a batch norm that keeps statistics.
_DROPS = "dropout", re.compile(r"\(\w+, (?!0\.0,)[\d.e-]+, True\b")
_TRAINED = {
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"), _DROPS),
    "batch_norm": ("batch norm", re.compile(r"\(\w+, (?!None)\w+, \w+, \w+, \w+, True\b")),
}
#: Comments above nodes, as a pattern for whole lines.
COMMENT_LINES = r"(?m)^[^\S\n]*# File: .*$"
#: A line with an operation (a call, or an item taken), for what counts faster than Python.
OPERATION_LINE = r" +\w+(?: *:[^=\n]*)? = [\w.]+[\[(]"

_PLACE = r"# File: (?P<file>.+?):(?P<line>\d{1,9}) in (?P<function>[^,\n]+)"
#: One line of a graph: an assignment (after an in-place operation, maybe), a comment, or another.
_LINE = re.compile(
    r"^(?: +(?:(?P<changed>\w+ [^\s=]{1,2})= (?P<by>[^;\n]+);  )?"
    r'(?P<name>\w+)(?: *: *"(?P<meta>[^"\n]*)")? = '
    r"(?P<target>[A-Za-z_][\w.<>]*(?=[(\[]))?(?P<rest>.*)"
    rf"|[^\S\n]*{_PLACE}.*|(?P<other>.*))$",
    re.MULTILINE,
)
_RETURN = re.compile(r"^[^\S\n]*return ", re.MULTILINE)
_CLASS = re.compile(r"^[^\S\n]*class ", re.MULTILINE)
_INFIX = re.compile(r"[\w.-]+ (?P<sign>\*\*|//|[-+*/@%&|^]|[<>=!]=|[<>]) ")
#: Signs → functions of Python's ``operator``, which are what FX has as the node's target.
_SIGNS = {
    **{"+": "add", "-": "sub", "*": "mul", "/": "truediv", "@": "matmul", "%": "mod"},
    **{"**": "pow", "//": "floordiv", "&": "and_", "|": "or_", "^": "xor"},
    **{"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"},
}
_ANNOTATED = re.compile(r'(\w+): "([^"]*)"')
_INPUT = re.compile(r'(?!self\b)\b(\w+)(?:: "([^"]*)")?(?=[,)])')
_COMMENT = re.compile(r"#.*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TENSOR = re.compile(
    r"^(?:Parameter\()?(?P<dtype>[a-z]+\d+\w*)\[(?P<sizes>[^\]]*)\](?:\[(?P<strides>[^\]]*)\])?"
)
_SIZE = re.compile(r"[0-9]{1,18}")
#: No machine has as many: a larger sum comes from damaged text.
MOST_BYTES = 2**60
_COMMENTED = re.compile(rf"\s*{_PLACE}")
_ANNOTATION = re.compile(r': "[^"]*"')
_SIGNATURE = re.compile(r"^[^\S\n]*def forward\(.*", re.MULTILINE)

#: The same, for the places alone: an assignment, maybe after an in-place one; a comment; no text.
_PLACED = re.compile(
    r"\n *(?:(?:\w+ \S{1,2}= [^;\n]+;  )?(?P<node>\w+)(?: *:[^=\n]*)? = "
    r"|# File: (?P<place>.+?:\d{1,9}) in |(?=\n))"
)
#: A collective whose arguments end with its group's size and the default group's name.
_OF_DEFAULT_GROUP = re.compile(
    r"_c10d_functional\.(?:all_gather_into_tensor|reduce_scatter_tensor)\.default"
    r"\([^()\n]*, (\d{1,7}), '0'\)"
)
_STORED = re.compile(r"\s*\w+\[.{1,1000}\] = (\w+);  setitem")
_LOWERED_NODE = re.compile(r"\n +(\w+)(?: *:[^=\n]*)? = torch\.ops\.(\w+\.\w+)")

#: Names that Python, torch's functions and ATen have for the same operator.
_SAME_WORD = {
    **{"rsub": "sub", "radd": "add", "true_divide": "div", "truediv": "div", "mod": "remainder"},
    **{"floordiv": "floor_divide", "negative": "neg", "absolute": "abs", "multiply": "mul"},
    **{"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"},
    **dict.fromkeys(("float", "half", "bfloat16", "double", "type"), "to"),
    "cross_entropy": "cross_entropy_loss",
}
#: In-place signs: ``operator.iadd`` and the like.
_SAME_WORD |= {
    f"i{name.rstrip('_')}": _SAME_WORD.get(name.rstrip("_"), name.rstrip("_"))
    for name in _SIGNS.values()
}


class Place(NamedTuple):
    """The line of source that a comment names, of whoever's code it is."""

    file: str
    line: int
    function: str

    @property
    def user_line(self) -> str | None:
        """``file:line`` in the user's own code, else None."""
        return f"{self.file}:{self.line}" if is_user_file(self.file) else None


@dataclass(slots=True)
class Node:
    """A node of a graph, or an input of it (then ``target`` and ``args`` are empty).

    ``target`` is what is called as FX has it: ``torch.ops.aten.add.Tensor``, ``operator.add`` where
    the text has a sign, ``operator.getitem``; methods as they stand: ``l_x_.view``. It is empty for
    another name of the same thing (``l_x_ = L_x_``). ``args`` is the text from there on, up to what
    is freed; ``meta`` the annotation; ``inputs`` the nodes that are read, as ``read_graph`` finds.
    """

    name: str
    target: str = ""
    args: str = ""
    meta: str = ""
    place: Place | None = None
    op: str = ""
    inputs: tuple[str, ...] = ()

    @property
    def is_view(self) -> bool:
        """Whether it moves no data: a view, or one of several results."""
        return self.op in VIEWS or self.op == ITEM

    @property
    def in_place(self) -> bool:
        """Written into its first input: ``aten.copy_``, ``aten.index_put_``."""
        return self.op.endswith("_") and bool(self.inputs)

    @property
    def user_line(self) -> str | None:
        """``file:line`` of the user's own code that it comes from; None: not known."""
        return self.place.user_line if self.place else None

    @property
    def dtype(self) -> str | None:
        """Torch's name of its dtype; None if it is no tensor."""
        found = _TENSOR.match(self.meta)
        return dtype_of(found["dtype"]) if found else None

    @property
    def bytes(self) -> int | None:
        """Bytes of its result; None where a size is symbolic or it is no tensor."""
        return tensor_bytes(self.meta)

    @property
    def is_number(self) -> bool:
        """Whether it is a size, which lives on the host."""
        return self.meta.startswith("Sym")

    @property
    def word(self) -> str | None:
        """The operator in one word: ``add``; None where there is none."""
        return target_word(self.target)


@dataclass(eq=False)
class Graph:
    """A graph: ``nodes`` in order, inputs included; ``outputs`` are what it returns."""

    nodes: dict[str, Node] = field(default_factory=dict)
    outputs: frozenset[str] = frozenset()
    users: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def inputs(self) -> list[Node]:
        """What the graph is called with."""
        return [node for node in self.nodes.values() if not node.args]

    @property
    def operations(self) -> list[Node]:
        """Calls and items taken."""
        return [node for node in self.nodes.values() if node.op]

    @property
    def assigned(self) -> list[Node]:
        """All but the inputs."""
        return [node for node in self.nodes.values() if node.args]

    def add(self, node: Node) -> None:
        """Add a node with what it reads; a method's first input is what it is called on."""
        nodes = self.nodes
        if node.name in nodes:
            return  # no graph names two nodes alike: without this, one could be made of itself
        if node.args:
            if node.op == ITEM:
                inputs = [node.args.partition("[")[0]]
            else:
                inputs = _WORD.findall(node.args)
                if node.op and (owner := node.target.partition(".")[0]) in nodes:
                    node.op = f"Tensor.{node.target.rpartition('.')[2]}"
                    inputs.insert(0, owner)
            node.inputs = tuple(dict.fromkeys([word for word in inputs if word in nodes]))
            for source in node.inputs:
                self.users[source].append(node.name)
        nodes[node.name] = node

    def base(self, name: str) -> tuple[str, int | None]:
        """What ``name`` is a view of, and the bytes that reading the view takes at most."""
        node = self.nodes[name]
        least = node.bytes
        while node.is_view and node.inputs:
            source = self.nodes[node.inputs[0]]
            if node.op == ITEM and not source.is_view:
                break  # one of several results (``var_mean[0]``), which has bytes of its own
            node = source
            if node.bytes is not None and (least is None or node.bytes < least):
                least = node.bytes
        return node.name, least

    def gives_view(self, name: str) -> bool:
        """Whether ``name``, of a graph of Dynamo's, is a view of something, and not that itself."""
        node, moved = self.nodes[name], False
        while node.inputs:
            source = self.nodes[node.inputs[0]]
            if node.op == ITEM:
                # One of several results of its own: ``x.max(0)[0]``.
                if source.target and not source.meta and source.word not in VIEW_WORDS:
                    break
            elif node.target and node.word not in VIEW_WORDS:
                break
            node, moved = source, moved or bool(node.target)
        return moved

    def uses(self, name: str) -> set[str]:
        """Operations that read ``name``, itself or a view of it; ``return`` if it is an output."""
        return set(self.users_of(name))

    def results(self, node: Node) -> list[tuple[str, int | None]]:
        """(name, bytes) of the tensors that an operation makes: one, or those taken of a tuple."""
        if node.meta:
            return [(node.name, 0 if node.is_number else node.bytes)]
        users = (self.nodes[user] for user in self.users.get(node.name, ()))
        picked = [(user.name, user.bytes) for user in users if user.op == ITEM]
        return picked or [(node.name, node.bytes)]

    def users_of(self, name: str) -> Iterator[str]:
        """``uses``, one after the other; an operation may come twice."""
        views, seen = [name], {name}
        for view in views:  # grows while it is read: views of views
            if view in self.outputs:
                yield "return"
            for user in self.users.get(view, ()):
                if not self.nodes[user].is_view:
                    yield user
                elif user not in seen:
                    seen.add(user)
                    views.append(user)


def read_graph(text: str) -> Graph:
    """The graph that ``text`` prints, without those inside it; lines of another form are skipped.

    >>> read_graph('    y: "f32[2]" = torch.sin(x)').nodes["y"].bytes
    8
    """
    graph = Graph()
    end = _RETURN.search(text)
    for node in _read(text[: end.start()] if end else text):
        graph.add(node)
    if end:
        below = _CLASS.search(text, end.end())
        returned = text[end.end() : below.start() if below else len(text)]
        outputs = _WORD.findall(_COMMENT.sub("", returned))
        graph.outputs = frozenset(name for name in outputs if name in graph.nodes)
    return graph


def read_nodes(text: str) -> list[Node]:
    """All nodes that ``text`` assigns, those of graphs inside it too, without their ``inputs``."""
    return [node for node in _read(text) if node.args]


def _read(text: str) -> Iterator[Node]:
    """Inputs and assignments, line by line."""
    place = None
    for found in _LINE.finditer(text):
        changed, by, name, meta, target, rest, file, line, function, other = found.groups()
        if name:
            args = rest.partition(";  ")[0]
            node = Node(name, target or "", args, meta or "", place)
            if changed:
                node.target, node.args = _of_sign(changed.split()[1], "i"), f"{changed}= {by}"
            elif not target:
                if sign := _INFIX.match(args):
                    node.target = _of_sign(sign["sign"])
                elif args.startswith("-"):
                    node.target = "operator.neg"
            elif args[0] == "[":
                node.target, node.args, node.op = "operator.getitem", f"{target}{args}", ITEM
            else:
                node.op = op_name(target)
            yield node
        elif file:
            place = Place(file, int(line), function)
        elif not other.strip():
            place = None
        elif '"' in other or "def forward(" in other:
            for name, meta in (_INPUT if "def " in other else _ANNOTATED).findall(other):
                yield Node(name, meta=meta)


def _of_sign(sign: str, prefix: str = "") -> str:
    name = _SIGNS.get(sign)
    return f"operator.{prefix}{name.rstrip('_') if prefix else name}" if name else ""


def training_only(node: Node) -> str | None:
    """Which layer that works otherwise in evaluation a node of Dynamo's graph runs for training.

    >>> training_only(Node("y", "torch.nn.functional.dropout", "(x, 0.1, True, False)"))
    'dropout'
    """
    kind = _TRAINED.get(node.target.removeprefix("torch.nn.functional."))
    return kind[0] if kind and kind[1].match(node.args) else None


@lru_cache(4096)
def op_name(target: str) -> str:
    """``torch.ops.aten.add.Tensor`` as ``aten.add``; others as they are, without ``torch.``."""
    if target.startswith("torch.ops."):
        return ".".join(target.split(".")[2:4])
    return target.removeprefix("torch.")


def operator_word(name: str) -> str:
    """``aten::add_`` and ``aten.add.Tensor`` as ``add``; namespaces, overloads and ``_`` go."""
    parts = name.replace("::", ".").removeprefix("torch.ops.").split(".")
    word = (parts[1] if len(parts) > 1 else parts[0]).rstrip("_")
    return _SAME_WORD.get(word, word)


@lru_cache(4096)
def target_word(target: str) -> str | None:
    """The same of a node's target, where functions and methods have longer paths.

    None for what is no operator: an item, another name of the same thing.
    """
    if not target or target == "operator.getitem":
        return None
    if target.startswith("torch.ops.") and target.count(".") > 2:
        return operator_word(target)
    word = target.rpartition(".")[2].rstrip("_")
    return _SAME_WORD.get(word, word)


def tensor_sizes(meta: str) -> tuple[int, ...] | None:
    """16 and 256 of ``f16[16, 256][256, 1]cuda:0``; None as for ``tensor_bytes``."""
    found = _TENSOR.match(meta)
    return _numbers(found["sizes"]) if found else None


def tensor_strides(meta: str) -> tuple[int, ...] | None:
    """256 and 1 of ``f16[16, 256][256, 1]cuda:0``; None as for ``tensor_bytes``."""
    found = _TENSOR.match(meta)
    return _numbers(found["strides"]) if found and found["strides"] is not None else None


def _numbers(text: str) -> tuple[int, ...] | None:
    words = [word.strip() for word in text.split(",") if word.strip()]
    return tuple(map(int, words)) if all(map(_SIZE.fullmatch, words)) else None


@lru_cache(4096)  # a graph has many tensors and few shapes
def tensor_bytes(meta: str) -> int | None:
    """Bytes of ``f16[16, 256][256, 1]cuda:0``; None where a size is symbolic or it is no tensor."""
    found, sizes = _TENSOR.match(meta), tensor_sizes(meta)
    dtype = dtype_of(found["dtype"]) if found else None
    if sizes is None or dtype is None:
        return None
    total = prod(sizes) * size_of(dtype)
    return total if total <= MOST_BYTES else None


def operator_lines(text: str) -> list[tuple[str, str | None]]:
    """(operator's word, ``file:line`` of the user's own code or None) of every node, in order."""
    return [(node.word, node.user_line) for node in read_nodes(text) if node.word]


def node_lines(text: str) -> dict[str, str]:
    """``file:line`` of nodes that are the user's own code, much faster than ``read_nodes``."""
    found: dict[str, str] = {}
    user_lines: dict[str, str | None] = {}
    at: str | None = None
    for node, place in _PLACED.findall(f"\n{text}"):
        if node:
            if at is not None:
                found[node] = at
        elif place and place not in user_lines:
            file, _, line = place.rpartition(":")
            at = user_lines[place] = f"{file}:{int(line)}" if is_user_file(file) else None
        else:
            at = user_lines.get(place)
    return found


def stored_lines(text: str) -> dict[str, str]:
    """The user's line of a value → that of ``x[i] = value``, of Dynamo's graph ``text``.

    What is stored by several lines is left out.
    """
    made = node_lines(text)
    found: dict[str, set[str]] = {}
    for line, place in lines(text):
        at = place.user_line if place else None
        stored = _STORED.match(line)
        if at and stored and stored[1] in made:
            found.setdefault(made[stored[1]], set()).add(at)
    return {value: min(places) for value, places in found.items() if len(places) == 1}


def called_operators(text: str) -> dict[str, str]:
    """Node name to operator of ``torch.ops``, in any graph: ``{"y": "mylib.scale"}``."""
    return {node: f"{space}.{name}" for node, space, name in _CALLED.findall(text)}


def lowered_operators(text: str) -> dict[str, str]:
    """Node name to ATen operator of a post-grad graph, in its order, as fast as can be."""
    return dict(_LOWERED_NODE.findall(f"\n{text}"))


def lines(text: str) -> Iterator[tuple[str, Place | None]]:
    """Every line but comments and empty ones, with the place that the comment above it names."""
    place = None
    for line in text.splitlines():
        if found := _COMMENTED.match(line):
            place = Place(found["file"], int(found["line"]), found["function"])
        elif not line.strip():
            place = None
        else:
            yield line, place


def statement(line: str) -> str:
    """A line of a graph without annotations and without what is freed."""
    return _ANNOTATION.sub("", line).strip().split(";  ", 1)[0]


def signature(text: str) -> str | None:
    """The line that names the graph's inputs, with their annotations."""
    found = _SIGNATURE.search(text)
    return found[0].strip() if found else None


def collectives(text: str) -> list[str]:
    """Collectives of a graph in its order: ``all_reduce(scores, 'sum', '0') f32[16, 40]``."""
    if "c10d_functional" not in text:
        return []
    return [
        f"{node.target.removesuffix('.default').rpartition('c10d_functional.')[2]}"
        f"{node.args} {node.meta}".rstrip()
        for node in read_nodes(text)
        if node.op.lstrip("_").startswith("c10d_functional.") and "wait_tensor" not in node.op
    ]


def default_group_size(text: str) -> int | None:
    """Ranks of the default process group, where a collective of the graph names it (``'0'``)."""
    found = _OF_DEFAULT_GROUP.search(text)
    return int(found[1]) if found else None

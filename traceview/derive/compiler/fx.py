"""FX graphs as torch prints them, and the bytes that their operations move.

    add: "f16[16, 256][256, 1]cuda:0" = torch.ops.aten.add.Tensor(arg2_1, tanh);  tanh = None

A result's bytes are its elements times its dtype's size; with symbolic sizes they are not known.
Views move nothing: what they are made of is read instead, and never more of it than the view holds.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from math import prod

import msgspec

from traceview.torchtext.frames import FILE_COMMENT, FILE_PLACE, is_user_file

DTYPE_BYTES = {
    "f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1,
    "u16": 2, "u32": 4, "u64": 8, "b8": 1, "c64": 8, "c128": 16, "c32": 4,
    "f8e4m3fn": 1, "f8e5m2": 1, "f8e4m3fnuz": 1, "f8e5m2fnuz": 1, "f8e8m0fnu": 1,
}  # fmt: skip
VIEWS = frozenset(
    f"aten.{name}" for name in (
        "alias", "as_strided", "detach", "diagonal", "expand", "lift_fresh", "permute", "reshape",
        "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind",
        "unfold", "unsqueeze", "view", "view_as_complex", "view_as_real", "_unsafe_view",
        "_reshape_alias",
    )
)  # fmt: skip
#: Computed once and then read: never computed again in the kernel that uses them.
REDUCTIONS = frozenset(
    f"aten.{name}" for name in (
        "all", "amax", "amin", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std",
        "sum", "var", "var_mean", "cumsum", "cumprod", "logcumsumexp",
    )
) | {"prims.prepare_softmax_online"}  # fmt: skip
LOOKUPS = frozenset(("aten.embedding", "aten.gather", "aten.index", "aten.index_select"))
PICK = "getitem"
MOST_BYTES = 2**60

#: One line of a graph: an operation, the comment above it, or anything else.
_LINE = re.compile(
    r'^(?: +(?P<name>\w+)(?:: "(?P<meta>[^"\n]*)")? = '
    r"(?P<target>[A-Za-z_][\w.<>]*)(?P<rest>[(\[].*)"
    rf"|[^\S\n]*{FILE_COMMENT}{FILE_PLACE}.*|(?P<other>.*))$",
    re.MULTILINE,
)
_RETURN = re.compile(r"^[^\S\n]*return ", re.MULTILINE)
_COMMENT = re.compile(r"#.*")
_ANNOTATED = re.compile(r'(\w+): "([^"]*)"')
_TENSOR = re.compile(r"^(?:Parameter\()?(?P<dtype>[a-z]+\d+\w*)\[(?P<sizes>[^\]]*)\]")
_SIZE = re.compile(r"[0-9]{1,18}")
_WORD = re.compile(r"[A-Za-z_]\w*")


class Node(msgspec.Struct, frozen=True, gc=False):
    """An operation (``inputs``: names of nodes) or input of a graph; ``bytes`` of its result."""

    name: str
    op: str
    inputs: tuple[str, ...] = ()
    bytes: int | None = None
    line: str | None = None
    meta: str = ""
    moves_nothing: bool = False

    @property
    def in_place(self) -> bool:
        """Written into its first input: ``aten.copy_``, ``aten.index_put_``."""
        return self.op.endswith("_") and bool(self.inputs)


class Shared(msgspec.Struct, frozen=True):
    """What a kernel has in common with others.

    ``elsewhere``: operations that another one has computed before. ``again``: operations that
    others compute for themselves, with those that then do not need this kernel's result.
    """

    elsewhere: frozenset[str] = frozenset()
    again: Mapping[str, frozenset[str]] = {}


class Graph(msgspec.Struct, dict=True):
    """A parsed graph: ``nodes`` in order, inputs included; ``outputs`` are what it returns."""

    nodes: dict[str, Node] = {}
    outputs: frozenset[str] = frozenset()
    users: dict[str, list[str]] = msgspec.field(default_factory=lambda: defaultdict(list))

    @cached_property
    def operations(self) -> list[Node]:
        """Everything but the inputs."""
        return [node for node in self.nodes.values() if node.op]

    @cached_property
    def apart(self) -> int | None:
        """Bytes that all operations move as separate kernels; None if one is not known."""
        moving = (node.name for node in self.operations if not node.moves_nothing)
        return added(traffic(self, [name]) for name in moving)

    def base(self, name: str) -> tuple[str, int | None]:
        """What ``name`` is a view of, and the bytes that reading the view takes at most."""
        node = self.nodes[name]
        least = node.bytes
        while node.moves_nothing and node.inputs and not self._picks_result(node):
            node = self.nodes[node.inputs[0]]
            if node.bytes is not None and (least is None or node.bytes < least):
                least = node.bytes
        return node.name, least

    def uses(self, name: str) -> set[str]:
        """Operations that read ``name``, itself or a view of it; ``return`` if it is an output."""
        return set(self._uses(name))

    def is_used_beyond(self, inside: Collection[str], name: str) -> bool:
        """Whether any of its uses is not ``inside``."""
        return any(user not in inside for user in self._uses(name))

    def _uses(self, name: str) -> Iterator[str]:
        views, seen = [name], {name}
        for view in views:  # grows while it is read: views of views
            if view in self.outputs:
                yield "return"
            for user in self.users.get(view, ()):
                if not self.nodes[user].moves_nothing:
                    yield user
                elif user not in seen:
                    seen.add(user)
                    views.append(user)

    def _picks_result(self, node: Node) -> bool:
        """One of several results of an operation (``var_mean[0]``), which has bytes of its own."""
        return node.op == PICK and not self.nodes[node.inputs[0]].moves_nothing


Parse = Callable[[str], Graph]


def parse_graph(text: str) -> Graph:
    """The graph that ``text`` prints; lines of another form are passed over."""
    graph, place = Graph(), None
    end = _RETURN.search(text)
    body, returned = (text[: end.start()], text[end.end() :]) if end else (text, "")
    for found in _LINE.finditer(body):
        name, meta, target, rest, file, line, other = found.groups()
        if name:
            _add(graph, name, meta or "", target, rest, place)
        elif file:
            place = f"{file}:{int(line)}" if is_user_file(file) else None
        elif not other.strip():
            place = None
        elif '"' in other:
            for name, meta in _ANNOTATED.findall(other):
                graph.nodes.setdefault(name, Node(name, "", (), tensor_bytes(meta), None, meta))
    outputs = _WORD.findall(_COMMENT.sub("", returned))
    graph.outputs = frozenset(name for name in outputs if name in graph.nodes)
    return graph


def _add(graph: Graph, name: str, meta: str, target: str, rest: str, place: str | None) -> None:
    nodes = graph.nodes
    if name in nodes:
        return  # no graph names two nodes alike: without this, one could be made of itself
    op, owner, views = _operation(target)
    if target in nodes:
        op, views, inputs = PICK, True, [target]
    else:
        inputs = [word for word in _WORD.findall(rest.partition(";  ")[0]) if word in nodes]
        if owner in nodes:  # a method: x.view(…)
            op, views, inputs = f"Tensor.{target.rpartition('.')[2]}", False, [owner, *inputs]
    sources = tuple(dict.fromkeys(inputs))
    nodes[name] = Node(name, op, sources, tensor_bytes(meta), place, meta, views)
    for source in sources:
        graph.users[source].append(name)


@lru_cache(4096)
def _operation(target: str) -> tuple[str, str, bool]:
    """The operator, what stands before the first point, and whether it only makes a view."""
    op = op_name(target)
    return op, target.partition(".")[0], op in VIEWS or op == PICK


def op_name(target: str) -> str:
    """``torch.ops.aten.add.Tensor`` as ``aten.add``; others as they are, without ``torch.``."""
    if target.startswith("torch.ops."):
        return ".".join(target.split(".")[2:4])
    return target.removeprefix("torch.")


@lru_cache(4096)  # a graph has many tensors and few shapes
def tensor_bytes(meta: str) -> int | None:
    """Bytes of ``f16[16, 256][256, 1]cuda:0``; None where a size is symbolic or it is no tensor."""
    found = _TENSOR.match(meta)
    if found is None or found["dtype"] not in DTYPE_BYTES:
        return None
    sizes = [size.strip() for size in found["sizes"].split(",") if size.strip()]
    if not all(_SIZE.fullmatch(size) for size in sizes):
        return None
    return added([prod(map(int, sizes)) * DTYPE_BYTES[found["dtype"]]])


def traffic(graph: Graph, names: Iterable[str], shared: Shared | None = None) -> int | None:
    """Bytes that one kernel of the operations ``names`` reads and writes: each thing once.

    ``shared`` says what other kernels do with the same operations. None if a size is not known.
    """
    elsewhere, again = (shared.elsewhere, shared.again) if shared else ((), {})
    inside = set(names) - set(elsewhere)
    read: dict[str, int | None] = {}
    written: dict[str, int | None] = {}
    for name in inside:
        node = graph.nodes.get(name)
        if node is None or node.moves_nothing:
            continue
        for base, least in _read(graph, node):
            if not _within(graph, base, inside):
                read[base] = _larger(read.get(base, 0), least)
        if node.in_place:
            base, least = graph.base(node.inputs[0])
            written[base] = least
            continue
        mine = inside | again[name] if name in again else inside
        for result, size in results(graph, node):
            if graph.is_used_beyond(mine, result):
                written[result] = size
    return added([*read.values(), *written.values()])


def _read(graph: Graph, node: Node) -> Iterator[tuple[str, int | None]]:
    """What an operation reads: bases, and bytes of each at most.

    Of a table that it looks things up in, no more than it finds there; ``copy_`` does not read what
    it overwrites.
    """
    for at, source in enumerate(node.inputs):
        if graph.nodes[source].meta.startswith("Sym") or (at == 0 and node.op == "aten.copy_"):
            continue
        base, least = graph.base(source)
        if at == 0 and node.op in LOOKUPS and None not in (least, node.bytes):
            least = min(least or 0, node.bytes or 0)
        yield base, least


def results(graph: Graph, node: Node) -> list[tuple[str, int | None]]:
    """Tensors that an operation makes: itself, or those picked out of a tuple."""
    if node.meta:
        return [(node.name, 0 if node.meta.startswith("Sym") else node.bytes)]
    users = (graph.nodes[user] for user in graph.users.get(node.name, ()))
    picked = [(user.name, user.bytes) for user in users if user.op == PICK]
    return picked or [(node.name, node.bytes)]


def _within(graph: Graph, base: str, inside: set[str]) -> bool:
    node = graph.nodes[base]
    return base in inside or (node.op == PICK and node.inputs[0] in inside)


def _larger(known: int | None, size: int | None) -> int | None:
    return None if known is None or size is None else max(known, size)


def added(sizes: Iterable[int | None]) -> int | None:
    """The sum; None if one of them is not known, or where no machine has so many bytes."""
    total = 0
    for size in sizes:
        if size is None or size > MOST_BYTES:
            return None
        total += size
    return total if total <= MOST_BYTES else None


def counted(operations: Mapping[str, int] | Counter[str], most: int = 12) -> list[str]:
    """``aten.add ×3``, the most frequent first; the rest as one entry."""
    ordered = sorted(operations.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{op} ×{times}" for op, times in ordered[:most]]
    rest = ordered[most:]
    return [*shown, f"{len(rest)} others ×{sum(n for _, n in rest)}"] if rest else shown

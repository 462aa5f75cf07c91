"""Bytes that the operations of a graph move, each as a kernel of its own or several in one kernel.

A result's bytes are its elements times its dtype's size; with symbolic sizes they are not known.
Views move nothing: what they are made of is read instead, and never more of it than the view holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import msgspec

from traceview.parse.kineto.categories import FUSIBLE, operator_category
from traceview.torchtext.fx import ITEM, MOST_BYTES, Graph, Node

#: Computed once and then read: never computed again in the kernel that uses them.
_REDUCTIONS = """
    all amax amin any argmax argmin max mean min prod std sum var var_mean cumsum cumprod
    logcumsumexp
"""
REDUCTIONS = frozenset(
    ("prims.prepare_softmax_online", *(f"aten.{name}" for name in _REDUCTIONS.split()))
)
LOOKUPS = frozenset(("aten.embedding", "aten.gather", "aten.index", "aten.index_select"))
#: Of complex numbers, arithmetic without a category of its own.
_OF_COMPLEX = frozenset({"aten.angle", "aten.conj_physical", "aten.sgn"})

Parse = Callable[[str], Graph]


class Shared(msgspec.Struct, frozen=True):
    """What a kernel has in common with others.

    ``elsewhere``: operations that another one has computed before. ``again``: operations that
    others compute for themselves, which then do not need this kernel's result. ``holders``: the
    kernels that hold an operation, a bit each.
    """

    elsewhere: frozenset[str] = frozenset()
    again: frozenset[str] = frozenset()
    holders: Mapping[str, int] = {}

    def computed_with(self, name: str, other: str) -> bool:
        """Whether a kernel that computes ``name`` again holds ``other``, too."""
        held = self.holders.get(other, 0) if name in self.again else 0
        return bool(held & self.holders[name]) if held else False


def traffic(graph: Graph, names: Iterable[str], shared: Shared | None = None) -> int | None:
    """Bytes that one kernel of the operations ``names`` reads and writes: each thing once.

    ``shared`` says what other kernels do with the same operations. None if a size is not known.
    """
    shared = shared or Shared()
    inside = set(names) - shared.elsewhere
    read: dict[str, int | None] = {}
    written: dict[str, int | None] = {}
    for name in inside:
        node = graph.nodes.get(name)
        if node is None or node.is_view:
            continue
        for at, source in enumerate(node.inputs):
            if graph.nodes[source].is_number or (at == 0 and node.op == "aten.copy_"):
                continue  # copy_ does not read what it overwrites
            base, least = graph.base(source)
            if at == 0 and node.op in LOOKUPS and None not in (least, node.bytes):
                least = min(least or 0, node.bytes or 0)  # of a table no more than is found there
            of = graph.nodes[base]
            if base not in inside and not (of.op == ITEM and inside.issuperset(of.inputs)):
                known = read.get(base, 0)
                read[base] = None if known is None or least is None else max(known, least)
        if node.in_place:
            base, least = graph.base(node.inputs[0])
            written[base] = least
            continue
        for result, size in graph.results(node):
            beyond = (user for user in graph.users_of(result) if user not in inside)
            if any(not shared.computed_with(name, user) for user in beyond):
                written[result] = size
    return added([*read.values(), *written.values()])


def alone(graph: Graph) -> dict[str, int | None]:
    """Bytes that each operation moves as a kernel of its own; None if they are not known."""
    nodes = (node.name for node in graph.operations if not node.is_view)
    return {name: traffic(graph, [name]) for name in nodes}


def apart(graph: Graph) -> int | None:
    """Bytes that all operations move as separate kernels; None if one is not known."""
    return added(alone(graph).values())


def on_complex(graph: Graph, ops: Collection[str]) -> Iterator[Node]:
    """The operations of ``graph`` that are arithmetic on complex numbers, by one of ``ops``.

    An FFT has complex results, and linear algebra may: neither has a faster form in real numbers.
    """
    for node in graph.operations:
        if node.op in ops and not node.is_view and (_fusible(node) or node.op in _OF_COMPLEX):
            known = (node, *(graph.nodes[name] for name in node.inputs))
            if any((each.dtype or "").startswith("complex") for each in known):
                yield node


def complex_traffic(graphs: Iterable[Graph], ops: Collection[str]) -> tuple[int, int] | None:
    """Bytes that complex arithmetic by ``ops`` moves: as separate kernels, and fused.

    Fused is one kernel of all that has as many others of ``ops`` before it: an FFT's result is read
    again from memory. None where a size is not known.
    """
    separate: list[int | None] = []
    fused: list[int | None] = []
    for graph in graphs:
        mine = {node.name for node in on_complex(graph, ops)}
        depth: dict[str, int] = {}
        stages: dict[int, list[str]] = defaultdict(list)
        for node in graph.operations:
            stops = node.op in ops and node.name not in mine and not _fusible(node)
            depth[node.name] = stops + max((depth.get(name, 0) for name in node.inputs), default=0)
            if node.name in mine:
                stages[depth[node.name]].append(node.name)
                separate.append(traffic(graph, [node.name]))
        fused += [traffic(graph, names) for names in stages.values()]
    before, after = added(separate), added(fused)
    return None if before is None or after is None else (before, after)


def _fusible(node: Node) -> bool:
    return operator_category(node.op.replace(".", "::")) in FUSIBLE


def added(sizes: Iterable[int | None]) -> int | None:
    """The sum; None if one of them is not known, or where it is more than any machine has."""
    total = 0
    for size in sizes:
        if size is None or size > MOST_BYTES:
            return None
        total += size
    return total if total <= MOST_BYTES else None

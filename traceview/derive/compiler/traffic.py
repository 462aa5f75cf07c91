"""Bytes that the operations of a graph move, each as a kernel of its own or several in one kernel.

A result's bytes are its elements times its dtype's size; with symbolic sizes they are not known.
Views move nothing: what they are made of is read instead, and never more of it than the view holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from traceview.torchtext.fx import ITEM, MOST_BYTES, Graph

#: Computed once and then read: never computed again in the kernel that uses them.
_REDUCTIONS = """
    all amax amin any argmax argmin max mean min prod std sum var var_mean cumsum cumprod
    logcumsumexp
"""
REDUCTIONS = frozenset(
    ("prims.prepare_softmax_online", *(f"aten.{name}" for name in _REDUCTIONS.split()))
)
LOOKUPS = frozenset(("aten.embedding", "aten.gather", "aten.index", "aten.index_select"))

Parse = Callable[[str], Graph]


class Shared(msgspec.Struct, frozen=True):
    """What a kernel has in common with others.

    ``elsewhere``: operations that another one has computed before. ``again``: operations that
    others compute for themselves, with those that then do not need this kernel's result.
    """

    elsewhere: frozenset[str] = frozenset()
    again: Mapping[str, frozenset[str]] = {}


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
        mine = inside | again[name] if name in again else inside
        for result, size in graph.results(node):
            if graph.is_used_beyond(mine, result):
                written[result] = size
    return added([*read.values(), *written.values()])


def apart(graph: Graph) -> int | None:
    """Bytes that all operations move as separate kernels; None if one is not known."""
    return added(traffic(graph, [node.name]) for node in graph.operations if not node.is_view)


def added(sizes: Iterable[int | None]) -> int | None:
    """The sum; None if one of them is not known, or where it is more than any machine has."""
    total = 0
    for size in sizes:
        if size is None or size > MOST_BYTES:
            return None
        total += size
    return total if total <= MOST_BYTES else None

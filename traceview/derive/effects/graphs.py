"""What the logged graphs prove: operations that went away, and forward nodes computed again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import polars as pl

from traceview.torchtext import fx

Place = tuple[str, int]

TRACED = "dynamo_output"
CAPTURED = ("aot_joint", "aot_inference")
LOWERED = "post_grad"
FORWARD, BACKWARD = "aot_forward", "aot_backward"
KINDS = (TRACED, *CAPTURED, LOWERED, FORWARD, BACKWARD)
#: Operators with a graph of their own inside, whose lines later graphs may not name.
HIGHER_ORDER = "torch.ops.higher_order."
#: That of ``torch.utils.checkpoint``: eager computes its forward again as well.
CHECKPOINTED = f"{HIGHER_ORDER}tag_activation_checkpoint"
#: Operators that move no data, and that passes rewrite as another: views, and constants in eager.
VIEWS = fx.VIEWS | {"aten.lift_fresh_copy"}

#: What constant folding leaves behind.
CONSTANTS = frozenset({"aten.full", "aten.scalar_tensor"})
#: Operations that passes make of two others, or take apart into them.
MERGED = {"aten.addmm": ("aten.mm", "aten.add"), "aten.baddbmm": ("aten.bmm", "aten.add")}
#: Executions per step are means over a window.
_UNEVEN = 1e-6

_TANGENT = "tangents_"


class GraphFacts:
    """What the graphs of one pass say; made from rows of table ``graphs``."""

    def __init__(self, graphs: pl.DataFrame) -> None:
        self._traced: set[Place] = set()
        self._kept: set[Place] = set()
        #: (line, backward, operation) → (how many went, how many were captured), of every compile
        self._went: dict[tuple[Place, bool, str], set[tuple[int, int]]] = defaultdict(set)
        self._again: dict[str | None, frozenset[str]] = {}
        wanted = graphs.filter(pl.col("kind").is_in(KINDS) & pl.col("text").is_not_null())
        for _, mine in wanted.group_by("compile_key", maintain_order=True):
            self._add(mine)

    def gone(
        self, place: tuple[str | None, int | None], operator: str, times: float, *, backward: bool
    ) -> float:
        """Which part (0 to 1) of an operator's executions at a line the graphs no longer hold.

        ``times``: its executions there per step. Claimed only where it is proven: the line was
        traced and no later graph names it; or the captured graph has that operation there as often
        as it ran (or a whole fraction of it: then it is no piece of a decomposed operator), and the
        lowered one has fewer (``_gone``).
        """
        file, line = place
        if file is None or line is None or (file, line) not in self._traced:
            return 0.0
        if (file, line) not in self._kept:
            return 1.0
        name = operator.replace("::", ".").rstrip("_")
        found = self._went.get(((file, line), backward, name), set())
        if len(found) != 1:
            return 0.0
        ((went, had),) = found
        return went / had if times % had <= _UNEVEN else 0.0

    def recomputed(self, compile_id: str | None, aot_id: str | None, nodes: frozenset[str]) -> bool:
        """Whether ``nodes`` of a backward graph are all forward operations computed again."""
        again = self._again.get(compile_id, frozenset())
        return bool(nodes) and (aot_id or "").endswith("backward") and nodes <= again

    def _add(self, rows: pl.DataFrame) -> None:
        """The graphs of one compile; nothing is claimed unless both ends of lowering have lines."""
        texts: dict[str, list[str]] = defaultdict(list)
        for kind, text in rows.select("kind", "text").iter_rows():
            texts[kind].append(text)
        read = {kind: [fx.read_graph(text) for text in found] for kind, found in texts.items()}
        graphs = {kind: [_alive(graph) for graph in found] for kind, found in read.items()}
        traced = [
            graph.assigned
            for graph, text in zip(read.get(TRACED, ()), texts[TRACED], strict=True)
            if HIGHER_ORDER not in text
        ]
        checkpointed = any(CHECKPOINTED in text for text in texts[TRACED])
        # Names that both graphs compute: the joint graph's are unique, so each is one node, twice.
        forward, backward = (
            {node.name: _operation(node) for nodes in graphs.get(kind, ()) for node in nodes}
            for kind in (FORWARD, BACKWARD)
        )
        again = frozenset[str]()
        if not checkpointed:
            again = frozenset(name for name, op in backward.items() if forward.get(name) == op)
        named = frozenset[str]()
        if again:  # a backward kernel's recomputed nodes go by names of traced ones, its own do not
            own = backward.keys() - again
            named = frozenset(n.name for nodes in traced for n in nodes if n.name not in own)
        self._again[rows["compile_id"][0]] = again | named
        captured = [nodes for kind in CAPTURED for nodes in graphs.get(kind, ())]
        lowered = graphs.get(LOWERED, [])
        if not any(map(_places, captured)) or not any(map(_places, lowered)):
            return
        for nodes in traced:
            self._traced |= _places(nodes)
        for nodes in (*captured, *lowered):
            self._kept |= _places(nodes)
        before = _directions(captured, frozenset())
        after = _directions(lowered, again)
        for is_backward in (False, True):
            for (place, operation), found in _gone(before[is_backward], after[is_backward]).items():
                self._went[place, is_backward, operation].add(found)


def _operation(node: fx.Node) -> str:
    """The operation, one that writes in place the same; "" for views, items of tuples, Python."""
    is_operator = node.target.startswith("torch.ops.") and node.op not in VIEWS
    return node.op.rstrip("_") if is_operator else ""


def _place(node: fx.Node) -> Place | None:
    return node.place[:2] if node.place else None


def _places(nodes: Iterable[fx.Node]) -> set[Place]:
    return {place for node in nodes if (place := _place(node))}


def _alive(graph: fx.Graph) -> list[fx.Node]:
    """The nodes that the graph's results need, or that write to memory (``copy_``); last first."""
    needed = set(graph.outputs)
    alive = []
    for node in reversed(graph.assigned):
        if (node.op.endswith("_") and _operation(node)) or node.name in needed:
            alive.append(node)
            needed.update(node.inputs)
    return alive


def _directions(
    graphs: Iterable[Sequence[fx.Node]], again: frozenset[str]
) -> tuple[list[fx.Node], list[fx.Node]]:
    """(forward nodes, backward nodes): a backward node depends on a gradient that comes in.

    A backward graph counts without the nodes ``again`` that it recomputes: the forward has them.
    """
    found: tuple[list[fx.Node], list[fx.Node]] = ([], [])
    for nodes in graphs:
        gradients: set[str] = set()
        is_backward = any(name.startswith(_TANGENT) for node in nodes for name in node.inputs)
        for node in reversed(nodes):
            if is_backward and node.name in again:
                continue
            reads = any(n.startswith(_TANGENT) or n in gradients for n in node.inputs)
            if reads:
                gradients.add(node.name)
            found[reads].append(node)
    return found


def _gone(
    before: Sequence[fx.Node], after: Sequence[fx.Node]
) -> dict[tuple[Place, str], tuple[int, int]]:
    """(line, operation) → (how many of them went, how many there were before), in one direction.

    None went where the later graph has a kind of operation that the earlier one had not: it may
    stand for them. At most as many went at a line as in the whole graph: passes move nodes.
    """
    totals: list[Counter[str]] = []
    places: list[Counter[tuple[Place | None, str]]] = []
    for side in (before, after):
        named = [(_place(node), operation) for node in side if (operation := _operation(node))]
        kinds = [operation for _, operation in named]
        # what is merged of two counts as them as well
        totals.append(Counter([*kinds, *(part for kind in kinds for part in MERGED.get(kind, ()))]))
        places.append(Counter(named))
    lost = {op: n - totals[1][op] for op, n in totals[0].items()}
    replaced = totals[1].keys() - totals[0].keys() - CONSTANTS - MERGED.keys()
    found = {}
    for (place, operation), had in places[0].items():
        most = min(lost[op] for op in (operation, *MERGED.get(operation, ())[:1]))
        went = min(had - places[1][place, operation], most)
        if place is not None:
            found[place, operation] = (0 if replaced else max(0, went), had)
    return found

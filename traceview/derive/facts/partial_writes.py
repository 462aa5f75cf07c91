"""Writes to a part of a tensor for which generated code goes through all of it.

Table ``partial_writes``: writes in place that are none in compiled code.

In a graph no operation writes into a tensor: ``out[:, 3] = x`` becomes ``select_scatter``, whose
result is a new tensor. Inductor writes in place where it can, and such a node is then gone from the
post-grad graph. Where one is left, its C++ kernel chooses for each element of the whole tensor, and

- copies the result back where the tensor is an input of the graph;
- chooses once more for each write to the same tensor, where there are several in a row;
- stores what is read again in between (``price[:, k]`` of the write before) in a tensor of its own,
  which is as large as the whole: memory that eager never touches.

Triton kernels copy the tensor before and after the write, where it is an input, or once for every
few of several writes in a row; their time is by the bytes that they move. AOTAutograd makes such
writes of plain ones where inputs are views of one storage (``keys, values = cache.unbind(3)``): the
graph then has that storage as one input.

Table ``whole_copies``: an input of the graph of which the script asks for a changed copy
(``table = table.index_copy(0, at, rows)``). Eager copies all of it as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, NamedTuple, TypeVar

import polars as pl

from traceview.derive.effects.graphs import LOWERED
from traceview.derive.effects.kernels import STANCES
from traceview.derive.effects.parts import PAGE_FAULTS
from traceview.derive.facts.rows import ran_generated
from traceview.derive.facts.slow_fusions import fusion_times
from traceview.derive.kernel_groups import Origins
from traceview.derive.limits.generated import GeneratedCode
from traceview.tables import Tables, from_rows, grouped, having
from traceview.torchtext.cpp_work import work_of
from traceview.torchtext.dtypes import size_of
from traceview.torchtext.fx import Graph, Node, read_graph, stored_lines
from traceview.torchtext.output_code import Function

Row = dict[str, Any]
#: What a graph changes in a tensor.
Changes = TypeVar("Changes")
#: Their second input is what is written; of the others it is the last.
_OF_VIEWS = frozenset(
    f"aten.{name}_scatter" for name in ("as_strided", "diagonal", "select", "slice")
)
_SCATTERS = _OF_VIEWS | {"aten.index_put", "aten.scatter"}
_COPY = "aten.copy_"
_GROUP = ("pass", "rank", "group_id")
OF_ORIGIN = ("compile_key", "compile_id", "raw_file", "raw_line")
#: Fewer elements for each one that has to be written are within what fusion saves.
LEAST_WASTE = 4
_DEEPEST = 64
#: The least that a system has; not recorded.
_PAGE_BYTES = 4096


class Write(NamedTuple):
    """Writes in a row to one tensor of ``elements`` and ``bytes``: they change ``changed``.

    ``to_input``: the tensor is an input of the graph, and the result is copied back to it; ``line``
    of the user's own code; ``merged``: it is one of several inputs that share their storage, and
    the graph has that storage as its input; ``through``: elements of the smallest part of it that
    is gone through whole (a column, of which some elements are written), 0 where that is all.
    """

    writes: int
    elements: int
    bytes: int
    changed: int
    to_input: bool
    line: str
    merged: bool = False
    through: int = 0

    @property
    def row(self) -> Row:
        """Its columns of ``partial_writes``."""
        names = ("writes", "elements", "changed", "to_input", "merged")
        return {name: getattr(self, name) for name in names}

    @property
    def visited(self) -> int:
        """Elements that are gone through for it."""
        return (self.writes + self.to_input) * self.elements

    @property
    def needed(self) -> int:
        """Elements that have to be written; all of a new tensor once."""
        return self.changed + (0 if self.to_input else self.elements)

    @property
    def wasted(self) -> float:
        """The share of ``visited`` that need not be written."""
        return 1 - self.needed / self.visited


def partial_writes(tables: Tables) -> pl.DataFrame | None:
    """Table ``partial_writes``; None where no step was profiled."""
    if (ran := ran_generated(tables)) is None:
        return None
    times, moved, result = fusion_times(tables), _bytes_moved(tables), []
    found = []
    for kernel, origin, known in with_changes(tables, ran, wasteful_writes):
        lines = origin["user_lines"] or ()
        back = not lines and _COPY in (kernel["ops"] or ())  # it has no line
        if mine := [w for w in known if w.line in lines or (back and w.to_input)]:
            size = moved.get((kernel["name"], kernel["compile_id"]), 0)
            found.append((kernel, origin, mine, size))
    # Triton kernels read all of the tensor and write it.
    whole = Counter(w for _, _, mine, size in found for w in mine if size >= 2 * w.bytes)
    for kernel, origin, mine, size in found:
        cost: Row | None = None
        if kernel["clock"] == "host":
            cost = _of_loops(tables, ran, times, kernel, origin, mine)
        elif kernel["ms"] and (
            copied := [w for w in mine if size >= 2 * w.bytes and (w.to_input or whole[w] > 1)]
        ):
            # A new tensor has to be written once, whatever the number of kernels that do.
            largest = max(copied, key=lambda write: write.bytes)
            share = 2 * largest.bytes / size
            needed = largest.changed / largest.elements if largest.to_input else 1 / whole[largest]
            slower_ms = kernel["ms"] * share * (1 - needed)
            cost = {**largest.row, "ms": kernel["ms"], "share": share, "slower_ms": slower_ms}
        if cost is not None:
            stored = tables.once(_stored, origin["compile_key"])
            places = dict.fromkeys(stored.get(write.line, write.line) for write in mine)
            result.append(
                {
                    **{name: kernel[name] for name in (*_GROUP, "count", "clock")},
                    **{name: origin[name] for name in (*OF_ORIGIN, "kernel_name")},
                    "user_lines": list(places),
                    "profiled_ms": kernel["ms"],
                    **cost,
                }
            )
    return from_rows("partial_writes", result)


def _of_loops(
    tables: Tables,
    ran: pl.DataFrame,
    times: dict[tuple[Any, ...], tuple[float, float]],
    kernel: Row,
    origin: Row,
    mine: list[Write],
) -> Row | None:
    """Columns of ``partial_writes`` of a C++ kernel, by its loops; None where they are not read."""
    if (work := work_of(origin["source_code"])) is None:
        return None
    largest = max(mine, key=lambda write: write.visited)
    group = tuple(kernel[name] for name in _GROUP)
    of_group = float(having(ran, **dict(zip(_GROUP, group, strict=True)))["ms"].sum())
    ms = None
    if group in times and of_group:
        ms = (kernel["ms"] or 0.0) * times[group][1] / of_group
    share = work.share_of_loops(largest.through or largest.elements)
    places = kernel["graph_key"], kernel["compile_id"]
    functions = tables.once(GeneratedCode).functions(kernel["pass"], *places)
    name, size = origin["kernel_name"], largest.elements
    made = [found for each in functions for found in tensors_made(each, name, size)]
    copies = made if largest.to_input else made[1:]  # one of them is the result
    # Of the page faults that compiled steps have more than eager ones, those of the copies.
    pages_ms: float | None = None
    of_run = {name: kernel[name] for name in ("pass", "rank")}
    effect = having(tables["waterfall"], effect=PAGE_FAULTS, **of_run)["ms"]
    counts = having(tables["step_counts"], **of_run).select("stance", "page_faults")
    faults = dict(counts.drop_nulls().iter_rows())
    if not effect.is_empty() and len(faults) == len(STANCES):
        more = faults["compiled"] - faults["eager"]
        pages = sum(copies) * (kernel["count"] or 0.0) / _PAGE_BYTES
        pages_ms = effect[0] * min(1.0, pages / more) if more > 0 and effect[0] > 0 else 0.0
    return {
        **largest.row,
        "copies": len(copies) if functions else None,
        "ms": ms,
        "share": share,
        "slower_ms": None if ms is None else ms * share * largest.wasted,
        "pages_ms": pages_ms,
    }


def with_changes(
    tables: Tables, ran: pl.DataFrame, read: Callable[[Graph], Iterator[Changes]]
) -> Iterator[tuple[Row, Row, list[Changes]]]:
    """Each kernel that ``ran`` with its row of ``generated_kernels``, and what its graph changes.

    ``read`` finds the changes in a post-grad graph; other graphs have none.
    """
    graphs = grouped(
        tables["graphs"].filter(kind=LOWERED).iter_rows(named=True), "compile_key", "aot_id"
    )
    origins, known = Origins(tables), dict[tuple[Any, ...], list[Changes]]()
    for kernel in ran.iter_rows(named=True):
        if (origin := origins.of_kernel(kernel)) is None or not origin["source_code"]:
            continue
        key = origin["compile_key"], origin["aot_id"]
        if key not in known:
            texts = (row["text"] for row in graphs.get(key, ()))
            known[key] = [
                change
                for text in texts
                if any(f"{op}." in text for op in _SCATTERS)  # others need not be read
                for change in read(read_graph(text))
            ]
        yield kernel, origin, known[key]


def _bytes_moved(tables: Tables) -> dict[tuple[str, str], int]:
    """Bytes that a compiled kernel reads and writes, by its name and compile id."""
    limits = tables["kernel_limits"].filter(stance="compiled").drop_nulls("bytes")
    sizes = limits.select("name", "compile_id", "bytes").iter_rows()
    return {(name, compile_id): size for name, compile_id, size in sizes}


class Update(NamedTuple):
    """A changed copy of an input of ``elements`` and ``bytes``, which differs in ``changed``."""

    elements: int
    bytes: int
    changed: int
    line: str


def whole_copies(tables: Tables) -> pl.DataFrame | None:
    """Table ``whole_copies``; None where no step was profiled."""
    if (ran := ran_generated(tables)) is None:
        return None
    moved, result = _bytes_moved(tables), []
    for kernel, origin, known in with_changes(tables, ran, changed_copies):
        # It reads all of the input and writes all of the copy.
        size = moved.get((kernel["name"], kernel["compile_id"]), 0)
        lines = origin["user_lines"] or ()
        mine = [update for update in known if update.line in lines and size >= 2 * update.bytes]
        if mine and kernel["ms"]:
            update = max(mine, key=lambda each: each.bytes)
            share = 2 * update.bytes / size * (1 - update.changed / update.elements)
            result.append(
                {
                    **{name: kernel[name] for name in ("pass", "rank", "count", "clock")},
                    **{name: origin[name] for name in (*OF_ORIGIN, "kernel_name")},
                    **update._asdict(),
                    "profiled_ms": kernel["ms"],
                    "ms": kernel["ms"] * share,
                }
            )
    return from_rows("whole_copies", result)


def changed_copies(graph: Graph) -> Iterator[Update]:
    """Of a post-grad graph; where the copy is written back to the input it is a write in place."""
    for node in graph.operations:
        if node.op not in _SCATTERS or not node.inputs:
            continue
        root = graph.nodes[graph.base(node.inputs[0])[0]]
        whole, changed = elements_of(node), _changed(graph, node, {})
        if root.args or whole is None or changed is None or elements_of(root) != whole:
            continue
        kept = not _copied(graph, node.name, root.name)
        if kept and node.bytes and node.user_line and whole >= LEAST_WASTE * changed:
            yield Update(whole, node.bytes, changed, node.user_line)


def tensors_made(function: Function, kernel: str, elements: int) -> list[int]:
    """Bytes of each tensor of ``elements`` that is made for ``kernel`` to write."""
    names = {a.name for site in function.sites if site.kernel == kernel for a in site.arguments}
    mine = {name: function.buffers[name] for name in names & function.buffers.keys() if name}
    return [
        elements * size_of(buffer.dtype)
        for name, buffer in mine.items()
        if buffer.dtype
        and name not in function.dtypes.keys() | function.reused.keys()
        and prod(size or 0 for size in buffer.dims) == elements
    ]


def _stored(tables: Tables, compile_key: str) -> dict[str, str]:
    """``stored_lines`` of what Dynamo captured in a compile."""
    captured = tables["graphs"].filter(kind="dynamo_output", compile_key=compile_key)["text"]
    found: dict[str, str] = {}
    for text in captured.drop_nulls():
        found |= stored_lines(text)
    return found


def wasteful_writes(graph: Graph) -> Iterator[Write]:
    """The writes of a post-grad graph that go through many more elements than they have to."""
    scatters = [node for node in graph.operations if node.op in _SCATTERS and node.inputs]
    onto = {node.name: graph.base(node.inputs[0])[0] for node in scatters}
    parts = {graph.base(part.name)[0] for node in scatters if (part := part_of(graph, node))}
    # Views that are written to stay in the graph, though nothing reads them.
    unread: dict[tuple[str, tuple[str, ...]], Node] = {}
    for node in graph.operations:
        if (scatter := f"{node.op}_scatter") in _OF_VIEWS and not graph.uses(node.name):
            unread.setdefault((scatter, node.inputs[:1]), node)
    last = [name for name in onto if name not in {*onto.values(), *parts}]
    for end in last:
        chain = [end]
        while onto.get(chain[-1]) in onto:
            chain.append(onto[chain[-1]])
        node, root = graph.nodes[end], onto[chain[-1]]
        whole = elements_of(node)
        changed = [_changed(graph, graph.nodes[name], onto) for name in chain]
        if whole is None or None in changed:
            continue
        copied = _copied(graph, end, root)
        # AOTAutograd's views of inputs that share their storage have no line of the user's own.
        merged = not graph.nodes[root].args and any(
            node.op == "aten.as_strided" and node.inputs == (root,) and node.place is None
            for node in graph.operations
        )
        # Scatters may have no line. What they write has, or the view that they write to.
        places: list[Node | None] = []
        for one in (graph.nodes[name] for name in chain):
            places += [one, part_of(graph, one), unread.get((one.op, one.inputs[:1]))]
        lines = (place.user_line for place in places if place)
        # Views that a scatter writes back, and into which another one has written.
        parts_of = (part_of(graph, graph.nodes[name]) for name in chain)
        inner = [graph.base(part.name)[0] for part in parts_of if part]
        through = (elements_of(graph.nodes[name]) or 0 for name in inner if name in onto)
        write = Write(
            len(chain),
            whole,
            graph.nodes[end].bytes or 0,
            min(whole, sum(filter(None, changed))),
            copied and not graph.nodes[root].args,
            next(filter(None, lines), ""),
            merged,
            min(filter(None, through), default=0),
        )
        if write.line and write.visited >= LEAST_WASTE * write.needed:
            yield write


def _copied(graph: Graph, end: str, root: str) -> bool:
    """Whether ``end`` is copied to ``root``, maybe after writes into it in its place."""
    names = [end]
    for name in names:  # it grows
        users = [graph.nodes[user] for user in graph.uses(name) if user in graph.nodes]
        if any(user.op == _COPY and graph.base(user.inputs[0])[0] == root for user in users):
            return True
        written = (user for user in users if user.op.endswith("_") and user.inputs[0] == name)
        names += [user.name for user in written if user.name not in names]
    return False


def part_of(graph: Graph, node: Node) -> Node | None:
    """What a scatter writes; None for a number."""
    inputs = node.inputs[1:2] if node.op in _OF_VIEWS else node.inputs[2:][-1:]
    return graph.nodes[inputs[0]] if inputs else None


def _changed(graph: Graph, node: Node, onto: dict[str, str], depth: int = 0) -> int | None:
    """Elements that a scatter writes: of a view of a view, those of the inner one."""
    if (part := part_of(graph, node)) is None:
        return None
    inner = graph.base(part.name)[0]
    if inner in onto and depth < _DEEPEST:
        return _changed(graph, graph.nodes[inner], onto, depth + 1)
    return elements_of(part)


def elements_of(node: Node) -> int | None:
    """Of a node's tensor; None where its size is a symbol."""
    dtype = node.dtype
    return None if dtype is None or node.bytes is None else node.bytes // size_of(dtype)

"""What one compiled graph became: its post-grad operations, the scheduler's nodes, the kernels.

A graph is one of a compile's (forward and backward share the compile id); the n-th that the fusion
log schedules is the n-th generated module, and the logs are joined only where both count the same.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import polars as pl

from traceview.derive.compiler.traffic import REDUCTIONS, Parse, Shared, added, alone, traffic
from traceview.tables import Tables, grouped
from traceview.torchtext.fx import Graph, read_graph

Row = Mapping[str, Any]
_OP = re.compile(r"op\d+")
_BUFFER = re.compile(r"buf(\d+)")
GEMMS = frozenset(f"aten.{op}" for op in ("mm", "addmm", "bmm", "baddbmm", "convolution"))


class Kernel(msgspec.Struct, frozen=True):
    """One call in the generated code (``name`` None: one group of the fusion log) and its nodes."""

    name: str | None
    category: str | None
    nodes: tuple[str, ...]
    shared: Shared = msgspec.field(default_factory=Shared)


class Lowered(msgspec.Struct, dict=True):
    """One graph; ``decisions`` are its rows of ``fusions`` without candidates and rounds."""

    head: dict[str, Any]
    aot_id: str | None
    graph: Graph
    calls: Sequence[Row]
    candidates: dict[str, Row] = {}
    decisions: list[Row] = []

    @property
    def on_gpu(self) -> bool:
        metas = (node.meta for node in self.graph.nodes.values())
        return any("cuda:" in meta or "xpu:" in meta for meta in metas)

    def origins(self, scheduled: str) -> tuple[str, ...]:
        """Post-grad nodes of a scheduler node, or of a fused one (``op1_op2``); () if not known."""
        found: dict[str, None] = {}
        for op in _OP.findall(scheduled):
            row = self.candidates.get(op)
            found |= dict.fromkeys(row["origins"] or () if row else ())
        return tuple(name for name in found if name in self.graph.nodes)

    @cached_property
    def groups(self) -> list[tuple[str, ...]]:
        """The scheduler nodes of each kernel at the end of the fusion log."""
        whole: dict[str, tuple[str, ...]] = {op: (op,) for op in self.candidates}
        order = {op: at for at, op in enumerate(self.candidates)}
        for row in self.decisions:
            if row["decision"] == "fused":
                joined = {
                    member
                    for op in _OP.findall(f"{row['node1']} {row['node2']}")
                    for member in whole.get(op, ())
                }
                group = tuple(sorted(joined, key=order.__getitem__))
                whole.update((op, group) for op in joined)
        return list(dict.fromkeys(whole.values()))

    @cached_property
    def pointwise(self) -> dict[str, tuple[str, ...]]:
        """Operation → its group of scheduler nodes, where all of that group is pointwise."""
        return {
            name: group
            for group in self.groups
            if all(self.candidates[op]["kind"] == "pointwise" for op in group)
            for name in self.origins(" ".join(group))
        }

    @cached_property
    def kernels(self) -> list[Kernel]:
        """Kernels in order of running, by provenance or else the fusion log; [] without both."""
        called = [(row["kernel_name"], row["category"], row["post_nodes"]) for row in self.calls]
        if not called or not all(nodes for _, _, nodes in called):
            called = self._logged()
        order = {name: at for at, name in enumerate(self.graph.nodes)}
        sets = [
            tuple(sorted({node for node in nodes if node in order}, key=order.__getitem__))
            for _, _, nodes in called
        ]
        return [
            Kernel(name, category, nodes, shared)
            for (name, category, _), nodes, shared in zip(
                called, sets, self.shared(sets), strict=True
            )
        ]

    def shared(self, sets: Sequence[tuple[str, ...]]) -> list[Shared]:
        """What the kernels of these operations, in order of running, have in common.

        A reduction is computed once; anything else that several kernels hold, each computes again.
        """
        holders = _holders(sets)
        reductions = {name for name in holders if self.graph.nodes[name].op in REDUCTIONS}
        several = {name for name, held in holders.items() if held & (held - 1)}
        again = frozenset(several - reductions)
        computed: set[str] = set()
        found = []
        for nodes in sets:
            found.append(Shared(frozenset(computed.intersection(nodes)), again, holders))
            computed |= reductions.intersection(nodes)
        return found

    def _logged(self) -> list[tuple[str | None, str | None, Sequence[str]]]:
        """Groups of the fusion log; what it has no nodes for runs alone."""
        groups = [nodes for group in self.groups if (nodes := self.origins(" ".join(group)))]
        taken = {name for nodes in groups for name in nodes}
        alone = [n.name for n in self.graph.operations if n.name not in taken and not n.is_view]
        if not groups:
            return []
        return [
            *((None, None, nodes) for nodes in groups),
            *((None, "extern", (n,)) for n in alone),
        ]

    def scheduled(self, name: str) -> list[str]:
        """Scheduler nodes of ``op1_op2``; of ``{'buf0'}`` where buffers are numbered as nodes are.

        That is so while every node makes one buffer and none was taken out: numbers without a gap.
        """
        if buffers := _BUFFER.findall(name):
            if set(self.candidates) != {f"op{at}" for at in range(len(self.candidates))}:
                return []
            return [f"op{number}" for number in buffers if f"op{number}" in self.candidates]
        return _OP.findall(name)

    def refusals(self) -> dict[tuple[tuple[str, ...], tuple[str, ...]], list[Row]]:
        """Refusals by the two groups of the end that they are about, in order."""
        final = {op: group for group in self.groups for op in group}
        found: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Row]] = {}
        for row in self.decisions:
            nodes = [_OP.findall(row[name] or "")[:1] for name in ("node1", "node2")]
            groups = [final[op] for ops in nodes for op in ops if op in final]
            if row["decision"] == "refused" and len(groups) == 2 and groups[0] != groups[1]:
                found.setdefault((groups[0], groups[1]), []).append(row)
        return found

    def gemms_beside(self, nodes: tuple[str, ...], *, epilogue: bool) -> list[str]:
        """GEMMs that ``nodes`` read, or that read them; any if nodes are not known."""
        graph = self.graph
        if not nodes:
            return [node.name for node in graph.operations if node.op in GEMMS]
        if epilogue:
            found = [graph.base(i)[0] for n in nodes for i in graph.nodes[n].inputs]
        else:
            found = [user for n in nodes for user in graph.uses(n) if user in graph.nodes]
        return [name for name in dict.fromkeys(found) if graph.nodes[name].op in GEMMS]

    def apart(self, nodes: Iterable[str]) -> int | None:
        """Bytes that ``nodes`` move as separate kernels; None if a size is not known."""
        return added(self._alone[name] for name in nodes)

    @cached_property
    def _alone(self) -> Mapping[str, int | None]:
        return alone(self.graph)

    def traffic(self, nodes: Iterable[str], shared: Shared | None = None) -> int | None:
        """Bytes that one kernel of ``nodes`` reads and writes; None if a size is not known."""
        return traffic(self.graph, nodes, shared)

    def kernel_names(self, nodes: Iterable[str]) -> list[str]:
        """The named kernels that compute any of ``nodes``, each once."""
        held = 0
        for node in nodes:
            held |= self._holders.get(node, 0)
        found = (kernel for number, kernel in enumerate(self.kernels) if held >> number & 1)
        return list(dict.fromkeys(kernel.name for kernel in found if kernel.name))

    @cached_property
    def _holders(self) -> Mapping[str, int]:
        return _holders([kernel.nodes for kernel in self.kernels])

    def ops(self, nodes: tuple[str, ...]) -> list[str]:
        """Operators of ``nodes``, views left out, each once, in order."""
        mine = (self.graph.nodes[name] for name in nodes)
        return list(dict.fromkeys(node.op for node in mine if node.op and not node.is_view))

    def lines(self, nodes: tuple[str, ...]) -> list[str]:
        """The user's lines of ``nodes``, each once, in order."""
        found = (self.graph.nodes[name].user_line for name in nodes)
        return list(dict.fromkeys(line for line in found if line))

    def fused_bytes(self) -> int | None:
        """Bytes that all kernels move; None without kernels or where a size is not known."""
        moved = [self.traffic(kernel.nodes, kernel.shared) for kernel in self.kernels]
        return added(moved) if moved else None


def named(ops: list[str], most: int = 6) -> str:
    """Operators as they stand in a sentence."""
    shown = ", ".join(op.removeprefix("aten.").removeprefix("prims.") for op in ops[:most])
    return f"{shown} and {len(ops) - most} more" if len(ops) > most else shown


def lowered_graphs(tables: Tables, parse: Parse = read_graph) -> Iterator[Lowered]:
    """Every generated module with the post-grad graph that it was made of."""
    calls = grouped(tables["kernel_calls"].iter_rows(named=True), "compile_key", "aot_id")
    fusions = grouped(tables["fusions"].iter_rows(named=True), "compile_key")
    graphs = tables["graphs"].filter(pl.col("kind").is_in(["post_grad", "output_code"]))
    for key, rows in grouped(graphs.iter_rows(named=True), "compile_key").items():
        modules = [row for row in rows if row["kind"] == "output_code"]
        known = (row for row in fusions[key] if row["graph_index"] is not None)
        logged = grouped(known, "graph_index")
        scheduled = [logged[index] for index in sorted(logged)]
        for index, module in enumerate(modules):
            post = [r for r in rows if r["kind"] == "post_grad" and r["aot_id"] == module["aot_id"]]
            if len(post) != 1:
                continue
            head = {name: module[name] for name in ("pass", "rank", "compile_key", "compile_id")}
            mine = calls.get((key, module["aot_id"]), [])
            log = scheduled[index] if len(scheduled) == len(modules) else []
            yield Lowered(
                head,
                module["aot_id"],
                parse(post[0]["text"]),
                mine,
                candidates={row["node1"]: row for row in log if row["decision"] == "candidate"},
                decisions=[row for row in log if row["decision"] not in ("candidate", "round")],
            )


def _holders(sets: Sequence[tuple[str, ...]]) -> Mapping[str, int]:
    """The kernels, a bit each in order, that hold an operation; as whole numbers, since a kernel
    may hold all of a graph, and they are compared for every operation of every kernel."""
    found: dict[str, int] = defaultdict(int)
    for number, nodes in enumerate(sets):
        for name in nodes:
            found[name] |= 1 << number
    return found

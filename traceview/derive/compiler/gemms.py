"""GEMMs and their neighbours: epilogues and prologues that were fused, left apart or not tried."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from traceview.derive.compiler.lowered import Lowered, named
from traceview.derive.compiler.traffic import added, traffic
from traceview.torchtext.fx import Node

Row = dict[str, Any]
GEMMS = frozenset(f"aten.{op}" for op in ("mm", "addmm", "bmm", "baddbmm", "convolution"))
#: GEMM templates exist only while autotuning chooses between them (use_triton_template, utils.py).
_GPU_SETTING = "torch._inductor.config.max_autotune_gemm"
#: C++ ones only for weights that are constants (use_cpp_gemm_template, utils.py): inference.
_CPU_SETTING = "torch._inductor.config.max_autotune_gemm with torch._inductor.config.freezing"
_OP = re.compile(r"op\d+")
_BUFFER = re.compile(r"buf(\d+)")


def gemm_notes(graph: Lowered, tuned: pl.DataFrame) -> Iterator[Row]:
    """Notes of one graph; ``tuned`` are its compile's rows of ``autotune_choices``."""
    if not graph.candidates:
        return
    yield from _decided(graph)
    kinds = {row["kind"] for row in graph.candidates.values()}
    if "other" in kinds:
        return  # templates are there: which GEMMs they are, the log does not say
    known = {name for op in graph.candidates for name in graph.origins(op)}
    for node in graph.graph.operations:
        if node.op in GEMMS and node.name not in known:
            yield from _library_call(graph, node, tuned)


def _decided(graph: Lowered) -> Iterator[Row]:
    """Decisions of the log about a template and a neighbour.

    Scans and sorts stand in the log as templates do: the neighbour must have a GEMM beside it.
    """
    templates = {op for op, row in graph.candidates.items() if row["kind"] == "other"}
    for row in graph.decisions:
        first, second = (_members(graph, row[name] or "") for name in ("node1", "node2"))
        before, after = bool(templates & set(first)), bool(templates & set(second))
        if row["decision"] == "refused" or before == after:
            continue
        fused = row["decision"] == "fused" or (row["speedup"] or 0.0) > 1.0
        side = "epilogue" if before else "prologue"
        nodes = graph.origins(" ".join(second if before else first))
        gemms = _beside(graph, nodes, epilogue=before)
        if not gemms:
            continue
        ops = graph.ops(nodes)
        yield {
            "kind": f"{side}_{'fused' if fused else 'apart'}",
            "text": f"{named(ops) or 'a pointwise operation'} "
            f"{'after' if before else 'before'} the GEMM template: {_outcome(row, fused=fused)}",
            "reason": _benchmark(row["speedup"]) if row["decision"] == "benchmarked" else None,
            "kernels": graph.kernel_names(nodes),
            "ops": ops,
            "lines": graph.lines(nodes),
            "bytes_saved": _passed(graph, gemms[0], set(nodes)) if len(gemms) == 1 else None,
            "times": 1,
        }  # fmt: skip


def _outcome(row: Mapping[str, Any], *, fused: bool) -> str:
    if row["decision"] == "fused":
        return "runs inside it"
    if not row["speedup"]:
        return "tried, and no fused kernel could be timed: left apart"
    tried = f"tried both ways, fused {row['speedup']:.2f}× as fast as apart"
    return tried if fused else f"{tried}: left apart"


def _benchmark(speedup: float | None) -> str:
    return f"benchmark: {speedup:.3f}x" if speedup else "benchmark: no time for the fused kernel"


def _members(graph: Lowered, name: str) -> list[str]:
    """Scheduler nodes of ``op1_op2``; of ``{'buf0'}`` only where buffers are numbered as nodes are.

    That is so while every node makes one buffer and none was taken out: numbers without a gap.
    """
    if buffers := _BUFFER.findall(name):
        if set(graph.candidates) != {f"op{at}" for at in range(len(graph.candidates))}:
            return []
        return [f"op{number}" for number in buffers if f"op{number}" in graph.candidates]
    return _OP.findall(name)


def _beside(graph: Lowered, nodes: tuple[str, ...], *, epilogue: bool) -> list[str]:
    """The GEMMs that ``nodes`` read, or that read them; any of the graph if nodes are not known."""
    if not nodes:
        return [node.name for node in graph.graph.operations if node.op in GEMMS]
    if epilogue:
        found = [graph.graph.base(i)[0] for n in nodes for i in graph.graph.nodes[n].inputs]
    else:
        found = [u for n in nodes for u in graph.graph.uses(n) if u in graph.graph.nodes]
    return [name for name in dict.fromkeys(found) if graph.graph.nodes[name].op in GEMMS]


def _passed(graph: Lowered, gemm: str, inside: set[str]) -> int | None:
    """Bytes of what passes between ``inside`` and the GEMM beside them."""
    apart = added((traffic(graph.graph, [gemm]), traffic(graph.graph, inside)))
    both = traffic(graph.graph, {gemm, *inside})
    return None if apart is None or both is None else max(0, apart - both)


def _library_call(graph: Lowered, gemm: Node, tuned: pl.DataFrame) -> Iterator[Row]:
    """A GEMM that runs as a library call, with pointwise work right after or before it."""
    pointwise, lost = graph.pointwise, _lost_to_library(gemm, tuned)
    after = sorted({pointwise[u] for u in graph.graph.uses(gemm.name) if u in pointwise})
    if after:
        yield _not_tried(graph, gemm, graph.origins(" ".join(after[0])), "epilogue", lost)
    feeding = (graph.graph.base(source)[0] for source in gemm.inputs)
    only_for_it = (n for n in feeding if n in pointwise and graph.graph.uses(n) == {gemm.name})
    before = sorted({pointwise[name] for name in only_for_it})
    if before:
        yield _not_tried(graph, gemm, graph.origins(" ".join(before[0])), "prologue", lost)


def _not_tried(
    graph: Lowered, gemm: Node, nodes: tuple[str, ...], side: str, lost: str | None
) -> Row:
    ops = graph.ops(nodes)
    where = "after" if side == "epilogue" else "before"
    why = (
        f"autotuning chose the library's GEMM ({lost}), which takes nothing into it"
        if lost else "the GEMM is a library call, so fusing was not tried"
    )  # fmt: skip
    stay = "stays a kernel of its own" if len(ops) == 1 else "stay a kernel of their own"
    return {
        "kind": f"{side}_apart" if lost else f"{side}_not_tried",
        "text": f"{named(ops)} {where} {named([gemm.op])} {stay}: {why}",
        "reason": None,
        "kernels": graph.kernel_names(nodes),
        "ops": [gemm.op, *ops],
        "lines": list(dict.fromkeys(filter(None, (gemm.user_line, *graph.lines(nodes))))),
        "bytes_saved": _passed(graph, gemm.name, set(nodes)),
        "setting": None if lost else _setting(graph, gemm, side),
        "times": 1,
    }


def _setting(graph: Lowered, gemm: Node, side: str) -> str | None:
    """What would make torch try it; None where nothing does (a CPU's training graph, for one)."""
    if graph.on_gpu:
        prologue = " with torch._inductor.config.prologue_fusion" if side == "prologue" else ""
        return _GPU_SETTING + prologue
    trains = (graph.aot_id or "").endswith(("_forward", "_backward"))
    return None if trains or side == "prologue" or gemm.op == "aten.convolution" else _CPU_SETTING


def _lost_to_library(gemm: Node, tuned: pl.DataFrame) -> str | None:
    """The library's choice, where every autotuning of this operator in the compile chose it."""
    best = tuned.filter((pl.col("op") == gemm.op.removeprefix("aten.")) & pl.col("is_best"))
    if best.is_empty() or set(best["backend"]) != {"aten"}:
        return None
    choice: str = best["choice"][0]
    return choice

"""Table ``fusion_notes``: what was fused, what was refused and why, and what it saves in bytes.

GEMMs have notes of their own: epilogues and prologues that were fused, left apart or not tried.
Torch's reasons for leaving two nodes apart are in ``torch/_inductor/scheduler.py``, ``choices.py``
and ``codegen/simd.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import polars as pl

from traceview.derive.compiler.lowered import Lowered, named
from traceview.derive.compiler.traffic import added, traffic
from traceview.tables import Tables
from traceview.torchtext.fx import Node, op_name

Row = dict[str, Any]
#: Refused pairs of one graph that are looked at; the rest is one note.
MOST_PAIRS = 3000
_OP = re.compile(r"op\d+")
_NUMBERS = re.compile(r"\d+")
_SAID = {"fallback_kernel", "non_contiguous_reduction", "tiling", "grad_copy", "other"}
_HINTS = {
    "fallback_kernel": "Inductor has no code of its own for it, so it runs as ATen's kernel, alone",
    "non_contiguous_reduction": "a reduction runs over dimensions that lie apart in memory",
    "tiling": "Inductor's tiling may not suit its memory accesses",
    "grad_copy": "gradients are copied because cudagraphs run the backward",
}


def fusion_notes(tables: Tables, lowered: Iterable[Lowered]) -> list[Row]:
    """Rows of ``fusion_notes``, most bytes first; equal ones (ops, lines, reason) are one row."""
    notes: list[Row] = []
    for graph in lowered:
        mine = pl.col("compile_key") == graph.head["compile_key"]
        gemms = gemm_notes(graph, tables["autotune_choices"].filter(mine))
        found = (*_fused(graph), *_refused(graph), *gemms)
        notes += _merged({**graph.head, **note} for note in found)
    notes += _hints(tables)
    return sorted(notes, key=lambda note: -(note["bytes_saved"] or 0))


def _fused(graph: Lowered) -> Iterator[Row]:
    """Kernels that hold several operations, compared with one kernel for each of them."""
    for kernel in graph.kernels:
        ops = graph.ops(kernel.nodes)
        nodes = (graph.graph.nodes[name] for name in kernel.nodes)
        mine = [
            node.name
            for node in nodes
            if node.op and not node.is_view and node.name not in kernel.shared.elsewhere
        ]
        if len(mine) < 2 or kernel.category in ("extern", "fallback"):
            continue
        apart = added(traffic(graph.graph, [name]) for name in mine)
        together = traffic(graph.graph, kernel.nodes, kernel.shared)
        yield {
            "kind": "fused",
            "text": f"{len(mine)} operations of the lowered graph run as one kernel: {named(ops)}",
            "kernels": [kernel.name] if kernel.name else [],
            "ops": ops,
            "lines": graph.lines(kernel.nodes),
            "bytes_saved": _less(apart, together),
            "times": 1,
        }


def _less(apart: int | None, together: int | None) -> int | None:
    """Bytes that one kernel saves; None where either is not known."""
    return None if apart is None or together is None else max(0, apart - together)


def _refused(graph: Lowered) -> Iterator[Row]:
    """Groups that were left apart to the end: what another way joined is no refusal."""
    pairs = _pairs(graph)
    if len(pairs) > MOST_PAIRS:
        left = len(pairs) - MOST_PAIRS
        yield {
            "kind": "refused",
            "text": f"{left:,} more pairs stay apart: they were not looked at",
            "bytes_saved": None,
            "times": left,
            **{name: [] for name in ("ops", "lines", "kernels")},
        }
    for (first, second), rows in islice(pairs.items(), MOST_PAIRS):
        row = next((r for r in rows if not NOTHING_SHARED.match(r["reason"] or "")), rows[0])
        words, setting = plain(row["reason"])
        nodes1, nodes2 = graph.origins(" ".join(first)), graph.origins(" ".join(second))
        ops1, ops2 = graph.ops(nodes1), graph.ops(nodes2)
        saved = _would_save(graph, row["reason"], nodes1, nodes2)
        kernels = graph.kernel_names((*nodes1, *nodes2))
        if not saved and len(kernels) == 1:
            continue  # two loops of one C++ kernel: not even a launch would be saved
        yield {
            "kind": "refused",
            "text": f"{named(ops1) or row['node1']} and {named(ops2) or row['node2']} stay apart: "
            f"{words or row['reason']}",
            "reason": row["reason"],
            "ops": list(dict.fromkeys((*ops1, *ops2))),
            "lines": graph.lines((*nodes1, *nodes2)),
            "kernels": kernels,
            "bytes_saved": saved,
            "setting": setting,
            "times": sum(r["times"] or 1 for r in rows),
        }


def _pairs(graph: Lowered) -> dict[tuple[tuple[str, ...], tuple[str, ...]], list[Any]]:
    """Refusals by the two groups of the end that they are about, in order."""
    final = {op: group for group in graph.groups for op in group}
    found: dict[Any, list[Any]] = {}
    for row in graph.decisions:
        if row["decision"] != "refused":
            continue
        first, second = (_OP.findall(row[name] or "") for name in ("node1", "node2"))
        if first and second and first[0] in final and second[0] in final:
            pair = final[first[0]], final[second[0]]
            if pair[0] != pair[1]:
                found.setdefault(pair, []).append(row)
    return found


def _would_save(
    graph: Lowered, reason: str | None, first: tuple[str, ...], second: tuple[str, ...]
) -> int | None:
    """Bytes that one kernel of both would not move; 0 where torch says that they share none."""
    if reason and NOTHING_SHARED.match(reason):
        return 0
    if not first or not second:
        return None
    pair = (first, second)
    alone = (traffic(graph.graph, *part) for part in zip(pair, graph.shared(pair), strict=True))
    return _less(added(alone), traffic(graph.graph, (*first, *second)))


def _merged(notes: Iterable[Row]) -> list[Row]:
    """One note for all that say the same of the same operators and lines."""
    kept: dict[tuple[Any, ...], Row] = {}
    for note in notes:
        reason = _NUMBERS.sub("N", note.get("reason") or "")
        key = (note["kind"], note["text"], reason, tuple(note["ops"]), tuple(note["lines"]))
        known = kept.get(key)
        if known is None:
            kept[key] = {**note}
            continue
        known["times"] += note["times"]
        known["kernels"] = list(dict.fromkeys((*known["kernels"], *note["kernels"])))
        known["bytes_saved"] = added((known["bytes_saved"], note["bytes_saved"]))
    return list(kept.values())


def _hints(tables: Tables) -> Iterator[Row]:
    for row in tables["perf_hints"].iter_rows(named=True):
        if row["kind"] not in _SAID:
            continue  # padding on a CPU is always skipped, and always said
        what = (row["message"] or "").partition(": ")[2] if row["kind"] == "fallback_kernel" else ""
        words = _HINTS.get(row["kind"], row["message"] or "")
        yield {
            **{name: row[name] for name in ("pass", "rank", "compile_key", "compile_id")},
            "kind": "fallback" if row["kind"] == "fallback_kernel" else "hint",
            "text": f"{what}: {words}" if what else words,
            "reason": row["message"],
            "kernels": [what] if what else [],
            "ops": [op_name(what)] if what.startswith("torch.ops.") else [],
            "lines": [],
            "bytes_saved": None,
            "setting": "torch._inductor.config.triton.tile_reductions"
            if row["kind"] == "non_contiguous_reduction"
            else None,
            "times": row["times"],
        }


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

    Scans and sorts stand in the log as templates do: the neighbor must have a GEMM next to it.
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
        ops, speedup = graph.ops(nodes), row["speedup"]
        timed = f"{speedup:.3f}x" if speedup else "no time for the fused kernel"
        yield {
            "kind": f"{side}_{'fused' if fused else 'apart'}",
            "text": f"{named(ops) or 'a pointwise operation'} "
            f"{'after' if before else 'before'} the GEMM template: {_outcome(row, fused=fused)}",
            "reason": f"benchmark: {timed}" if row["decision"] == "benchmarked" else None,
            "kernels": graph.kernel_names(nodes),
            "ops": ops,
            "lines": graph.lines(nodes),
            "bytes_saved": _passed(graph, gemms[0], set(nodes)) if len(gemms) == 1 else None,
            "times": 1,
        }


def _outcome(row: Mapping[str, Any], *, fused: bool) -> str:
    if row["decision"] == "fused":
        return "runs inside it"
    if not row["speedup"]:
        return "tried, and no fused kernel could be timed: left apart"
    tried = f"tried both ways, fused {row['speedup']:.2f}× as fast as apart"
    return tried if fused else f"{tried}: left apart"


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
    """Bytes of what passes between ``inside`` and the GEMM next to them."""
    apart = added((traffic(graph.graph, [gemm]), traffic(graph.graph, inside)))
    return _less(apart, traffic(graph.graph, {gemm, *inside}))


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


_INDUCTOR = "torch._inductor.config."
#: Pattern of torch's reason → words that complete "not fused, because …", and a setting.
_REASONS: tuple[tuple[str, str, str | None], ...] = (
    (r"intermediate nodes between", "between them runs another kernel that needs the first one's result and feeds the second", None),
    (r"no shared data due to indexing", "they read the same data, but not in the same order", None),
    (r"no shared data", "they read nothing in common, so fusing them would save a launch and no memory traffic", None),
    (r"memory deps did not match", "the second reads the first one's result at other places than it is written to (transposed, shifted or broadcast)", None),
    (r"numel/rnumel mismatch prologue", "what feeds the GEMM loops over another size than the GEMM's input has", None),
    (r"numel/rnumel mismatch \(reduce\)", "they reduce over different sizes", None),
    (r"numel/rnumel mismatch", "they loop over different sizes", None),
    (r"nodes numel(?:/rnumel)? incompatibility", "one is a reduction, and the other loops over sizes that do not match it", None),
    (r"tiling mismatch|invalid tiling for reduction|invalid loop order and tiling", "their best tilings differ", "triton.tiling_prevents_pointwise_fusion, triton.tiling_prevents_reduction_fusion"),
    (r"Nodes are too far away", "they stand far apart in the graph, and keeping data for so long could raise the memory peak", None),
    (r"Fusion will increase peak memory", "fusing them would raise the memory peak", None),
    (r"score_fusion_memory_threshold", "they share so few bytes that torch does not count it worth while", "score_fusion_memory_threshold"),
    (r"exceeds max fusion", "the kernel would hold more operations than torch allows", "max_fusion_size"),
    (r"fusion_prevent_too_many_reads_and_writes", "the kernel would read and write more buffers than torch allows", "max_fusion_unique_io_buffers"),
    (r"device mismatch", "they run on different devices", None),
    (r"will create cycle|node1 must go before node2", "each needs something that runs before the other", None),
    (r"node1 is extern|node2 is extern or nop|node1 is nop", "one of them is a library call, which Inductor can't fuse into", None),
    (r"node1's triton kernel doesn't support|epilogue reads from buffers other", "one of them is the user's own Triton kernel", "epilogue_fusion_user_defined_triton_kernel"),
    (r"uses different buf layouts", "their memory layouts differ", None),
    (r"template epilogue not satisfied", "only pointwise operations can follow a GEMM in its kernel (and epilogue_fusion has to be on)", "epilogue_fusion"),
    (r"multi-output template epilogue", "the template has several results", None),
    (r"prologue fusion turned off", "fusing into a GEMM's input is switched off", "prologue_fusion"),
    (r"prologue fusion only supported for pointwise|template prologue can only fuse functional pointwise", "only pointwise operations without side effects can run while a GEMM reads its input", None),
    (r"template has no allowed prologue|prologue fusion not implemented", "this GEMM kernel can't compute its input on the way", None),
    (r"template prologue can only fuse nodes with a single use", "the GEMM's input is used elsewhere too, so it has to be written anyway", None),
    (r"prologue fusion will not increase amount of bytes", "the GEMM would have to read more bytes than it does now", None),
    (r"prologue fusion will not increase attempt to fuse in padding", "padding inside the GEMM would make its reads unaligned", None),
    (r"must be upcast to fp32 not profitable", "the GEMM computes in 16 bits, and what feeds it needs 32", None),
    (r"register spilling", "the kernel would need more registers than there are (it was tried)", None),
    (r"Split scan cannot fuse", "a split scan can't share a kernel with a reduction", None),
    (r"foreach", "a foreach operation and its neighbour do not match one to one", None),
    (r"grouped node must not be fused", "they belong to a group that torch keeps together", None),
    (r"fusion for buffer explicit disabled", "fusing is switched off for its buffer", None),
    (r"Exception in compiling", "compiling the fused kernel failed", None),
    (r"is not a ComputedBuffer|is not a Pointwise op|cutlass|TMA-enabled|has aliasing or mutation|computed buffer name", "this GEMM library can't take that operation into its kernel", None),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), words, setting) for pattern, words, setting in _REASONS)
NOTHING_SHARED = re.compile(r"^no shared data$")


def plain(reason: str | None) -> tuple[str | None, str | None]:
    """(words, setting) for torch's ``reason``; (None, None) for one that is not known here."""
    for pattern, words, setting in _COMPILED:
        if reason and pattern.search(reason):
            return words, f"{_INDUCTOR}{setting}" if setting else None
    return None, None

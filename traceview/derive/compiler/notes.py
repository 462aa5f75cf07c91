"""Table ``fusion_notes``: what was fused, what was refused and why, and what it saves in bytes.

GEMMs have notes of their own: epilogues and prologues that were fused, left apart or not tried.
Torch's reasons for leaving two nodes apart are in ``torch/_inductor/scheduler.py``, ``choices.py``
and ``codegen/simd.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import polars as pl

from traceview.derive.compiler.lowered import GEMMS, Lowered, named
from traceview.derive.compiler.traffic import added
from traceview.tables import Tables
from traceview.torchtext.fx import Node, op_name

Row = dict[str, Any]
#: Refused pairs of one graph that are looked at; the rest is one note.
MOST_PAIRS = 3000
_NUMBERS = re.compile(r"\d+")
NOTHING_SHARED = re.compile(r"^no shared data$")
#: GEMM templates exist only while autotuning chooses between them (use_triton_template, utils.py).
_GPU_SETTING = "torch._inductor.config.max_autotune_gemm"
#: C++ ones only for weights that are constants (use_cpp_gemm_template, utils.py): inference.
_CPU_SETTING = "torch._inductor.config.max_autotune_gemm with torch._inductor.config.freezing"
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
        # One note for all that say the same of the same operators and lines.
        kept: dict[tuple[Any, ...], Row] = {}
        for note in (*_fused(graph), *_refused(graph), *gemms):
            reason = _NUMBERS.sub("N", note.get("reason") or "")
            key = (note["kind"], note["text"], reason, *map(tuple, (note["ops"], note["lines"])))
            known = kept.get(key)
            if known is None:
                kept[key] = {**graph.head, **note}
                continue
            known["times"] += note["times"]
            known["kernels"] = list(dict.fromkeys((*known["kernels"], *note["kernels"])))
            known["bytes_saved"] = added((known["bytes_saved"], note["bytes_saved"]))
        notes += kept.values()
    for row in tables["perf_hints"].iter_rows(named=True):
        if row["kind"] not in _SAID:
            continue  # padding on a CPU is always skipped, and always said
        what = (row["message"] or "").partition(": ")[2] if row["kind"] == "fallback_kernel" else ""
        words = _HINTS.get(row["kind"], row["message"] or "")
        hint = {
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
        notes.append(hint)
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
        text = f"{len(mine)} operations of the lowered graph run as one kernel: {named(ops)}"
        kernels = [kernel.name] if kernel.name else []
        saved = _less(graph.apart(mine), graph.traffic(kernel.nodes, kernel.shared))
        yield _note(graph, "fused", text, kernel.nodes, saved, kernels=kernels)


def _note(
    graph: Lowered,
    kind: str,
    text: str,
    nodes: tuple[str, ...],
    saved: int | None,
    **more: object,
) -> Row:
    """A note about ``nodes`` that are (or would be) worth ``saved`` bytes, with columns ``more``."""
    return {
        "kind": kind,
        "text": text,
        "kernels": graph.kernel_names(nodes),
        "ops": graph.ops(nodes),
        "lines": graph.lines(nodes),
        "bytes_saved": saved,
        "times": 1,
        **more,
    }


def _less(apart: int | None, together: int | None) -> int | None:
    """Bytes that one kernel saves; None where either is not known."""
    return None if apart is None or together is None else max(0, apart - together)


def _refused(graph: Lowered) -> Iterator[Row]:
    """Groups that were left apart to the end: what another way joined is no refusal."""
    pairs = graph.refusals()
    if len(pairs) > MOST_PAIRS:
        left = len(pairs) - MOST_PAIRS
        text = f"{left:,} more pairs stay apart: they were not looked at"
        yield _note(graph, "refused", text, (), None, times=left)
    for (first, second), rows in islice(pairs.items(), MOST_PAIRS):
        row = next((r for r in rows if not NOTHING_SHARED.match(r["reason"] or "")), rows[0])
        words, setting = plain(row["reason"])
        nodes1, nodes2 = graph.origins(" ".join(first)), graph.origins(" ".join(second))
        saved = None
        if NOTHING_SHARED.match(row["reason"] or ""):
            saved = 0
        elif nodes1 and nodes2:
            pair = (nodes1, nodes2)
            shared = graph.shared(pair)
            alone = added(graph.traffic(*part) for part in zip(pair, shared, strict=True))
            saved = _less(alone, graph.traffic((*nodes1, *nodes2)))
        one, other = named(graph.ops(nodes1)), named(graph.ops(nodes2))
        text = (
            f"{one or row['node1']} and {other or row['node2']} stay apart: "
            f"{words or row['reason']}"
        )
        note = _note(graph, "refused", text, (*nodes1, *nodes2), saved, reason=row["reason"])
        if not saved and len(note["kernels"]) == 1:
            continue  # two loops of one C++ kernel: not even a launch would be saved
        yield {**note, "setting": setting, "times": sum(r["times"] or 1 for r in rows)}


def gemm_notes(graph: Lowered, tuned: pl.DataFrame) -> Iterator[Row]:
    """Notes of one graph; ``tuned`` are its compile's rows of ``autotune_choices``."""
    if not graph.candidates:
        return
    # Decisions of the log about a template and a neighbour. Scans and sorts stand in the log as
    # templates do: the neighbor must have a GEMM next to it.
    templates = {op for op, row in graph.candidates.items() if row["kind"] == "other"}
    for row in graph.decisions:
        first, second = (graph.scheduled(row[name] or "") for name in ("node1", "node2"))
        before, after = bool(templates & set(first)), bool(templates & set(second))
        if row["decision"] == "refused" or before == after:
            continue
        fused = row["decision"] == "fused" or (row["speedup"] or 0.0) > 1.0
        side = "epilogue" if before else "prologue"
        nodes = graph.origins(" ".join(second if before else first))
        gemms = graph.gemms_beside(nodes, epilogue=before)
        if not gemms:
            continue
        speedup = row["speedup"]
        timed = f"{speedup:.3f}x" if speedup else "no time for the fused kernel"
        outcome = "tried, and no fused kernel could be timed: left apart"
        if row["decision"] == "fused":
            outcome = "runs inside it"
        elif speedup:
            outcome = f"tried both ways, fused {speedup:.2f}× as fast as apart"
            outcome += "" if fused else ": left apart"
        where = "after" if before else "before"
        text = (
            f"{named(graph.ops(nodes)) or 'a pointwise operation'} {where} the GEMM template: "
            f"{outcome}"
        )
        kind = f"{side}_{'fused' if fused else 'apart'}"
        saved = _passed(graph, gemms[0], nodes) if len(gemms) == 1 else None
        reason = f"benchmark: {timed}" if row["decision"] == "benchmarked" else None
        yield _note(graph, kind, text, nodes, saved, reason=reason)
    if templates:
        return  # which GEMMs they are, the log does not say
    known = {name for op in graph.candidates for name in graph.origins(op)}
    for node in graph.graph.operations:
        if node.op in GEMMS and node.name not in known:
            yield from _beside_library_call(graph, node, tuned)


def _passed(graph: Lowered, gemm: str, nodes: tuple[str, ...]) -> int | None:
    """Bytes of what passes between ``nodes`` and the GEMM next to them."""
    apart = added((graph.traffic([gemm]), graph.traffic(nodes)))
    return _less(apart, graph.traffic([gemm, *nodes]))


def _beside_library_call(graph: Lowered, gemm: Node, tuned: pl.DataFrame) -> Iterator[Row]:
    """Pointwise work right after or before a GEMM that runs as a library call."""
    best = tuned.filter((pl.col("op") == gemm.op.removeprefix("aten.")) & pl.col("is_best"))
    # The library's choice, where every autotuning of this operator in the compile chose it.
    lost = best["choice"][0] if set(best["backend"]) == {"aten"} else None
    feeding = (graph.graph.base(source)[0] for source in gemm.inputs)
    only_for_it = [name for name in feeding if graph.graph.uses(name) == {gemm.name}]
    neighbors = {"epilogue": graph.graph.uses(gemm.name), "prologue": only_for_it}
    for side, names in neighbors.items():
        groups = sorted({graph.pointwise[name] for name in names if name in graph.pointwise})
        if not groups:
            continue
        nodes = graph.origins(" ".join(groups[0]))
        ops = graph.ops(nodes)
        where = "after" if side == "epilogue" else "before"
        stay = "stays a kernel of its own" if len(ops) == 1 else "stay a kernel of their own"
        why = "the GEMM is a library call, so fusing was not tried"
        if lost:
            why = f"autotuning chose the library's GEMM ({lost}), which takes nothing into it"
        # What would make torch try it; nothing does for a CPU's training graph, for one.
        trains = (graph.aot_id or "").endswith(("_forward", "_backward"))
        setting = None
        if lost is None and graph.on_gpu:
            prologue = " with torch._inductor.config.prologue_fusion"
            setting = _GPU_SETTING + (prologue if side == "prologue" else "")
        elif lost is None and side == "epilogue" and gemm.op != "aten.convolution" and not trains:
            setting = _CPU_SETTING
        text = f"{named(ops)} {where} {named([gemm.op])} {stay}: {why}"
        kind = f"{side}_apart" if lost else f"{side}_not_tried"
        note = _note(graph, kind, text, nodes, _passed(graph, gemm.name, nodes))
        lines = list(dict.fromkeys(filter(None, (gemm.user_line, *note["lines"]))))
        yield {**note, "ops": [gemm.op, *ops], "lines": lines, "setting": setting}


_INDUCTOR = "torch._inductor.config."
#: Pattern of torch's reason -> words that complete "not fused, because …" [and a setting]
_REASONS = r"""
    intermediate nodes between -> between them runs another kernel that needs the first one's result and feeds the second
    no shared data due to indexing -> they read the same data, but not in the same order
    no shared data -> they read nothing in common, so fusing them would save a launch and no memory traffic
    memory deps did not match -> the second reads the first one's result at other places than it is written to (transposed, shifted or broadcast)
    numel/rnumel mismatch prologue -> what feeds the GEMM loops over another size than the GEMM's input has
    numel/rnumel mismatch \(reduce\) -> they reduce over different sizes
    numel/rnumel mismatch -> they loop over different sizes
    nodes numel(?:/rnumel)? incompatibility -> one is a reduction, and the other loops over sizes that do not match it
    tiling mismatch|invalid tiling for reduction|invalid loop order and tiling -> their best tilings differ [triton.tiling_prevents_pointwise_fusion, triton.tiling_prevents_reduction_fusion]
    Nodes are too far away -> they stand far apart in the graph, and keeping data for so long could raise the memory peak
    Fusion will increase peak memory -> fusing them would raise the memory peak
    score_fusion_memory_threshold -> they share so few bytes that torch does not count it worth while [score_fusion_memory_threshold]
    exceeds max fusion -> the kernel would hold more operations than torch allows [max_fusion_size]
    fusion_prevent_too_many_reads_and_writes -> the kernel would read and write more buffers than torch allows [max_fusion_unique_io_buffers]
    device mismatch -> they run on different devices
    will create cycle|node1 must go before node2 -> each needs something that runs before the other
    node1 is extern|node2 is extern or nop|node1 is nop -> one of them is a library call, which Inductor can't fuse into
    node1's triton kernel doesn't support|epilogue reads from buffers other -> one of them is the user's own Triton kernel [epilogue_fusion_user_defined_triton_kernel]
    uses different buf layouts -> their memory layouts differ
    template epilogue not satisfied -> only pointwise operations can follow a GEMM in its kernel (and epilogue_fusion has to be on) [epilogue_fusion]
    multi-output template epilogue -> the template has several results
    prologue fusion turned off -> fusing into a GEMM's input is switched off [prologue_fusion]
    prologue fusion only supported for pointwise|template prologue can only fuse functional pointwise -> only pointwise operations without side effects can run while a GEMM reads its input
    template has no allowed prologue|prologue fusion not implemented -> this GEMM kernel can't compute its input on the way
    template prologue can only fuse nodes with a single use -> the GEMM's input is used elsewhere too, so it has to be written anyway
    prologue fusion will not increase amount of bytes -> the GEMM would have to read more bytes than it does now
    prologue fusion will not increase attempt to fuse in padding -> padding inside the GEMM would make its reads unaligned
    must be upcast to fp32 not profitable -> the GEMM computes in 16 bits, and what feeds it needs 32
    register spilling -> the kernel would need more registers than there are (it was tried)
    Split scan cannot fuse -> a split scan can't share a kernel with a reduction
    foreach -> a foreach operation and its neighbour do not match one to one
    grouped node must not be fused -> they belong to a group that torch keeps together
    fusion for buffer explicit disabled -> fusing is switched off for its buffer
    Exception in compiling -> compiling the fused kernel failed
    is not a ComputedBuffer|is not a Pointwise op|cutlass|TMA-enabled|has aliasing or mutation|computed buffer name -> this GEMM library can't take that operation into its kernel
"""
_REASON = re.compile(r" {4}(?P<pattern>.+) -> (?P<words>[^\[]+?)(?: \[(?P<setting>.+)\])?\n")
_COMPILED = tuple(
    (re.compile(row["pattern"]), row["words"], row["setting"]) for row in _REASON.finditer(_REASONS)
)


def plain(reason: str | None) -> tuple[str | None, str | None]:
    """(words, setting) for torch's ``reason``; (None, None) for one that is not known here."""
    for pattern, words, setting in _COMPILED:
        if reason and pattern.search(reason):
            return words, f"{_INDUCTOR}{setting}" if setting else None
    return None, None

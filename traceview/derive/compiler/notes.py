"""Table ``fusion_notes``: what was fused, what was refused and why, and what it saves in bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import polars as pl

from traceview.derive.compiler.gemms import gemm_notes
from traceview.derive.compiler.lowered import Kernel, Lowered, named
from traceview.derive.compiler.reasons import NOTHING_SHARED, plain
from traceview.derive.compiler.traffic import added, traffic
from traceview.tables import Tables
from traceview.torchtext.fx import op_name

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
    """Kernels that hold several operations, beside one kernel for each of them."""
    for kernel in graph.kernels:
        ops = graph.ops(kernel.nodes)
        mine = [
            n for n in kernel.nodes if graph.graph.nodes[n].op and n not in kernel.shared.elsewhere
        ]
        mine = [n for n in mine if not graph.graph.nodes[n].is_view]
        if len(mine) < 2 or kernel.category in ("extern", "fallback"):
            continue
        yield {
            "kind": "fused",
            "text": f"{len(mine)} operations of the lowered graph run as one kernel: {named(ops)}",
            "kernels": [kernel.name] if kernel.name else [],
            "ops": ops,
            "lines": graph.lines(kernel.nodes),
            "bytes_saved": _saved(graph, kernel, mine),
            "times": 1,
        }


def _saved(graph: Lowered, kernel: Kernel, nodes: list[str]) -> int | None:
    single = added(traffic(graph.graph, [name]) for name in nodes)
    together = traffic(graph.graph, kernel.nodes, kernel.shared)
    return None if single is None or together is None else max(0, single - together)


def _refused(graph: Lowered) -> Iterator[Row]:
    """Groups that were left apart to the end: what another way joined is no refusal."""
    pairs = _pairs(graph)
    if len(pairs) > MOST_PAIRS:
        yield _left_out(len(pairs) - MOST_PAIRS)
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


def _left_out(pairs: int) -> Row:
    text = f"{pairs:,} more pairs stay apart: what they are was not looked at"
    lists: Row = {"ops": [], "lines": [], "kernels": []}
    return {"kind": "refused", "text": text, "bytes_saved": None, "times": pairs, **lists}


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
    single = added(alone)
    both = traffic(graph.graph, (*first, *second))
    return None if single is None or both is None else max(0, single - both)


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
            if row["kind"] == "non_contiguous_reduction" else None,
            "times": row["times"],
        }  # fmt: skip

"""Tables ``graph_passes`` and ``ddp_buckets``: what passes did to a compile's graphs.

Both are read from the graphs' own texts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import polars as pl

from traceview.compile_id import process_and_id
from traceview.derive.compiler.lowered import Lowered
from traceview.derive.compiler.traffic import Parse, added, apart
from traceview.tables import Tables, from_rows, grouped
from traceview.torchtext.fx import Graph, read_graph, read_nodes, signature

Row = dict[str, Any]
Moved = Callable[[Graph], int | None]
#: Stage → kinds of the graphs before it (the first that was recorded counts) and after it.
STAGES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("capture", (), ("dynamo_output",)),
    ("pre_grad", ("before_pre_grad",), ("after_pre_grad",)),
    ("aot", ("after_pre_grad", "dynamo_output"), ("aot_joint", "aot_inference")),
    ("joint", ("before_joint",), ("after_joint",)),
    ("partition", ("aot_joint",), ("aot_forward", "aot_backward")),
    ("post_grad", ("before_post_grad",), ("post_grad",)),
)
_ORDER = (*(stage for stage, _, _ in STAGES), "fusion")
_HEAD = ("pass", "rank", "compile_key", "compile_id")
_COUNTED = ("pass", "rank", "pid", "compile_id", "stage", "patterns")
_PYTHON_LEVEL = frozenset(("dynamo_output", "before_pre_grad", "after_pre_grad"))


def graph_passes(tables: Tables, lowered: Iterable[Lowered], parse: Parse) -> list[Row]:
    """Rows of ``graph_passes``, in order of running within each compile.

    Bytes are those of every operation as a kernel of its own; not given for graphs of Python-level
    functions. Fusion's are those of the kernels.
    """
    kinds = {kind for _, before, after in STAGES for kind in (*before, *after)}
    staged = tables["graphs"].filter(pl.col("kind").is_in(kinds))
    by_compile = grouped(staged.iter_rows(named=True), "compile_key")
    fused = grouped(lowered, by=lambda graph: graph.head["compile_key"])
    # (pass, rank, process, compile id) → stage → patterns that its passes matched, in order
    counted: dict[tuple[object, ...], dict[str, list[int]]]
    counted = defaultdict(lambda: defaultdict(list))
    for *compile_, stage, patterns in tables["pattern_counts"].select(_COUNTED).iter_rows():
        counted[tuple(compile_)][stage].append(patterns)
    ids = process_and_id(by_compile)
    moved = cache(apart)
    rows: list[Row] = []
    for key, graphs in by_compile.items():
        mine = list(_passes(graphs, parse, moved))
        mine += [
            {
                **graph.head,
                "aot_id": graph.aot_id,
                "stage": "fusion",
                "nodes_before": sum(not node.is_view for node in graph.graph.operations),
                "nodes_after": len(graph.calls) or len(graph.kernels),
                "read_bytes_before": moved(graph.graph),
                "read_bytes_after": graph.fused_bytes(),
            }
            for graph in fused.get(key, ())
            if graph.kernels
        ]
        if mine and key in ids:
            head = {name: mine[0][name] for name in _HEAD}
            # How many patterns each matched: the n-th pass, the n-th row. Where there are more
            # passes than graphs, or fewer, nothing is claimed; a stage whose graphs torch does not
            # log gets rows of its own.
            matched = counted.get((head["pass"], head["rank"], *ids[key]), {})
            for stage, found in matched.items():
                same = [row for row in mine if row["stage"] == stage]
                if not same:
                    same = [{**head, "aot_id": None, "stage": stage} for _ in found]
                    mine += same
                if len(found) == len(same):
                    for row, patterns in zip(same, found, strict=True):
                        row["patterns"] = patterns
            mine.sort(key=lambda row: _ORDER.index(row["stage"]))
        rows += mine
    return rows


class _Text(NamedTuple):
    """A graph's row with what its text says."""

    row: Row
    graph: Graph
    bytes: int | None


def _passes(rows: Sequence[Row], parse: Parse, moved: Moved) -> Iterator[Row]:
    last = max((row["attempt"] or 0 for row in rows), default=0)
    texts = []
    for row in rows:
        if (row["attempt"] or 0) == last:
            graph = parse(row["text"])
            python_level = row["kind"] in _PYTHON_LEVEL
            texts.append(_Text(row, graph, None if python_level else moved(graph)))
    for stage, earlier, later in STAGES:
        after = [text for text in texts if text.row["kind"] in later]
        found = ([text for text in texts if text.row["kind"] == kind] for kind in earlier)
        before = next(filter(None, found), [])
        if stage == "partition":
            if len(before) == 1 and len(after) == 2:
                yield _row(stage, before, after)
        elif stage == "capture":
            yield from (_row(stage, [], [text]) for text in after)
        elif len(before) == len(after):
            yield from (_row(stage, [b], [a]) for b, a in zip(before, after, strict=True))


def _row(stage: str, before: list[_Text], after: list[_Text]) -> Row:
    row = after[0].row
    old, new = (Counter(n.op for t in side for n in t.graph.operations) for side in (before, after))
    return {
        **{name: row[name] for name in _HEAD},
        "aot_id": row["aot_id"] if len(after) == 1 else None,
        "stage": stage,
        "nodes_before": old.total() if before else None,
        "nodes_after": new.total(),
        "read_bytes_before": added(text.bytes for text in before) if before else None,
        "read_bytes_after": added(text.bytes for text in after),
        "removed": _counted(old - new) if before else None,
        "added": _counted(new - old) if before else None,
    }


def _counted(operations: Counter[str], most: int = 12) -> list[str]:
    """``aten.add ×3``, the most frequent first; the rest as one entry."""
    ordered = sorted(operations.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{op} ×{times}" for op, times in ordered[:most]]
    rest = ordered[most:]
    return [*shown, f"{len(rest)} others ×{sum(n for _, n in rest)}"] if rest else shown


def ddp_buckets(tables: Tables) -> pl.DataFrame:
    """Table ``ddp_buckets``: what DDPOptimizer cut out of a graph, pieces in the forward's order.

    A parameter is known by its name, as Dynamo makes it of where the parameter was found:
    ``l_self_modules_up_parameters_weight_: "f32[512, 256]"``.
    """
    rows: list[dict[str, Any]] = []
    met: Counter[tuple[str | None, int | None]] = Counter()
    children = tables["graphs"].filter(pl.col("kind") == "ddp_split_child")
    head = ("pass", "rank", "compile_key", "compile_id", "attempt", "raw_file", "raw_line")
    for row in children.iter_rows(named=True):
        attempt, text = (row["compile_key"], row["attempt"]), row["text"] or ""
        parameters = [node for node in read_graph(text).inputs if "_parameters_" in node.name]
        sizes = [node.bytes for node in parameters if node.bytes is not None]
        has_signature = signature(text) is not None
        whole = has_signature and len(sizes) == len(parameters)
        rows.append(
            {
                **{key: row[key] for key in head},
                "bucket": met[attempt],
                "op_count": len(read_nodes(text)),
                "parameters": len(parameters) if has_signature else None,
                "parameter_bytes": sum(sizes) if whole else None,
            }
        )
        met[attempt] += 1
    return from_rows("ddp_buckets", rows)

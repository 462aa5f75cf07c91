"""What an inference graph computes of weights alone, again in every call.

Table ``weight_work``: the graph's inputs that are parameters of modules, or buffers that nothing
writes into, and what is computed of them and of nothing else, such as the weight of a
parametrization (``weight_norm``), of an adapter that is added to it, or a table made of a buffer.
In inference the results are the same in every call.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import polars as pl

from traceview.derive.effects.graphs import LOWERED
from traceview.derive.facts.rows import ran_generated, timed_scales
from traceview.derive.kernel_groups import Origins
from traceview.tables import Tables, from_rows
from traceview.torchtext.fx import Graph, Node, read_graph

Row = dict[str, Any]
_INFERENCE = "inference"
_TRACED, INFERRED = "dynamo_output", "aot_inference"
#: Dynamo's name of a graph's input that is a parameter of a module, or a buffer.
_PARAMETER, _BUFFER = re.compile(r"_parameters_\w+_$"), re.compile(r"_buffers_\w+_$")


def graphs_of_inference(tables: Tables, kind: str) -> dict[str, dict[str, Graph]]:
    """compile_key → its graphs of inference, by kind: Dynamo's, and that of such a ``kind``."""
    graphs, found = tables["graphs"], defaultdict[str, dict[str, Graph]](dict)
    keys = graphs.filter(kind=INFERRED)["compile_key"].unique().to_list()
    wanted = pl.col("kind").is_in([_TRACED, kind])
    mine = graphs.filter(wanted, pl.col("compile_key").is_in(keys))
    for key, name, text in mine.select("compile_key", "kind", "text").iter_rows():
        found[key][name] = read_graph(text or "")
    return found


def weights_of(graphs: dict[str, Graph], kind: str) -> list[tuple[Node, Node]]:
    """Dynamo's inputs that are parameters or buffers, with those of the graph of another kind.

    AOTAutograd keeps Dynamo's order of inputs; where their number differs, nothing is known.
    """
    if not {_TRACED, kind} <= graphs.keys():
        return []
    given, own = graphs[_TRACED].inputs, graphs[kind].inputs
    if len(given) != len(own):
        return []
    pairs = zip(given, own, strict=True)
    return [pair for pair in pairs if is_parameter(pair[0]) or _BUFFER.search(pair[0].name)]


def is_parameter(node: Node) -> bool:
    """Whether an input of Dynamo's graph is a parameter of a module, by its name."""
    return bool(_PARAMETER.search(node.name))


def is_written(graph: Graph, name: str) -> bool:
    """Whether an operation of the graph writes into ``name``."""
    users = (graph.nodes[user] for user in graph.users[name])
    return any(user.in_place and user.inputs[0] == name for user in users)


def made_of_weights(graph: Graph, weights: set[str]) -> dict[str, set[str]]:
    """Operations that read ``weights``, or what is made of them, and nothing else → those."""
    found: dict[str, set[str]] = {name: {name} for name in weights}
    for node in graph.operations:
        if node.inputs and not node.in_place and all(name in found for name in node.inputs):
            found[node.name] = set().union(*(found[name] for name in node.inputs))
    return {name: read for name, read in found.items() if name not in weights}


def kernels_of_inference(tables: Tables, ran: pl.DataFrame) -> Iterator[tuple[Row, Row]]:
    """Each generated kernel of ``ran_generated`` that an inference graph has, and its origin.

    A weight that is trained changes in every step: only inference can keep what is made of it.
    """
    origins = Origins(tables)
    keys = ("pass", "rank", "name", "compile_id", "graph_key", "aot_id", "clock")
    mine = ran.filter(pl.col("aot_id").str.ends_with(_INFERENCE))
    kernels = mine.group_by(keys, maintain_order=True).agg(pl.col("ms", "count").sum())
    for kernel in kernels.iter_rows(named=True):
        if (origin := origins.of_kernel(kernel)) is not None:
            yield kernel, origin


def weight_work(tables: Tables) -> pl.DataFrame | None:
    """Table ``weight_work``; None where no step was profiled."""
    if (ran := ran_generated(tables)) is None:
        return None
    made = {}
    for key, graphs in graphs_of_inference(tables, LOWERED).items():
        graph = graphs.get(LOWERED)
        inputs = [own for _, own in weights_of(graphs, LOWERED)]
        if graph is not None:
            weights = {own.name for own in inputs if not is_written(graph, own.name)}
            made[key] = graph, made_of_weights(graph, weights)
    copied = {
        (row["compile_key"], row["kernel_name"]) for row in tables["weight_copies"].to_dicts()
    }
    calls: dict[tuple[str, str], list[set[str] | None]] = defaultdict(list)
    for call in tables["kernel_calls"].filter(pl.col("compile_key").is_in([*made])).to_dicts():
        graph, of = made[call["compile_key"]]
        nodes = [name for name in call["post_nodes"] or () if name in graph.nodes]
        only = bool(nodes) and all(name in of for name in nodes)
        read = set().union(*(of[name] for name in nodes)) if only else None
        calls[call["compile_key"], call["kernel_name"]].append(read)
    scales = timed_scales(tables)
    result = []
    for kernel, origin in kernels_of_inference(tables, ran):
        place = origin["compile_key"], origin["kernel_name"]
        known = calls.get(place, [])
        own = [read for read in known if read]
        scale = scales.get((kernel["pass"], kernel["rank"]))
        if not own or place in copied or scale is None:
            continue
        graph, _ = made[origin["compile_key"]]
        weights = set().union(*own)
        share = len(own) / len(known)
        result.append(
            {
                **{key: kernel[key] for key in ("pass", "rank", "aot_id", "count", "clock")},
                **{key: origin[key] for key in ("compile_key", "compile_id", "user_lines")},
                **{key: origin[key] for key in ("raw_file", "raw_line", "kernel_name")},
                "ops": origin["fused_ops"],
                "weights": len(weights),
                "bytes": sum(graph.nodes[name].bytes or 0 for name in weights),
                "profiled_ms": kernel["ms"],
                "share": share,
                "ms": share * scale * kernel["ms"],
            }
        )
    return from_rows("weight_work", sorted(result, key=lambda row: -row["ms"]))

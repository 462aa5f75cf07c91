"""Graph and code texts: envelope keys and artifacts whose payload is one; orders of collectives."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import polars as pl
from msgspec.structs import asdict

from traceview import limits
from traceview.parse.cutting import Record
from traceview.parse.payloads.module import Module, module
from traceview.parse.structured import settings
from traceview.parse.structured.decode import decode, json_object, text_of, told
from traceview.parse.structured.state import CodeSection, Reader, Row
from traceview.torchtext.fx import OPERATION_LINE

# Envelope key to ``kind`` in table ``graphs``.
KEYS = {
    "dynamo_output_graph": "dynamo_output",
    "aot_joint_graph": "aot_joint",
    "aot_forward_graph": "aot_forward",
    "aot_backward_graph": "aot_backward",
    "aot_inference_graph": "aot_inference",
    "inductor_pre_grad_graph": "pre_grad",
    "inductor_post_grad_graph": "post_grad",
    "after_post_grad_graph": "post_grad",  # 2.8, 2.9 (torch/_inductor/compile_fx.py)
    "compiled_autograd_graph": "compiled_autograd",
    "optimize_ddp_split_graph": "ddp_split",
    "optimize_ddp_split_child": "ddp_split_child",
    "graph_dump": "graph_dump",
}
ARTIFACTS = re.compile(
    r"(?:before|after)_\w+_graph|inductor_(?:pre|post)_grad_graph|fx_graph_runnable"
    r"|compiled_autograd_graph_\w+|aot_\w+_graph"
)
#: Variables that a runnable script sets: their values may be secrets, so they are left out.
_VARIABLE = re.compile(r"^(?P<name>os\.environ\['[^'\n]*'\]) = .*$", re.MULTILINE)
# Written while one graph is lowered, so they belong to the next generated code.
_LOWERED = frozenset(("before_post_grad", "post_grad", "fx_graph_runnable"))

_NO_GRAPHS = ("fx_graph_runnable", "output_code")


def graph(reader: Reader, record: Record) -> None:
    """A graph or the runnable script of one, under an envelope key of its own or as an artifact."""
    name = record.name or record.key
    kind = KEYS.get(name) or (name if name == "fx_graph_runnable" else name.removesuffix("_graph"))
    compile, text = reader.process.find(record), text_of(reader, record)
    if kind == "fx_graph_runnable":
        text = _VARIABLE.sub(r"\g<name> = '…'", text)
    row = reader.process.add("graphs", record, compile, _row(record, kind, text))
    settings.world_size_of_graph(reader, record, kind, text)
    if compile is None:
        return
    compile.graphs += kind == "dynamo_output"
    if kind in _LOWERED:
        compile.waiting.append(row)


def output_code(reader: Reader, record: Record) -> None:
    """``{"filename", "file_path"}`` and the module that Inductor wrote."""
    process = reader.process
    compile = process.find(record)
    text = text_of(reader, record, limits.now.long_text)
    found = told(record, Module, lambda: module(text))
    place = json_object(reader, record, record.body)
    file = place.get("file_path") or place.get("filename")
    row = _row(record, "output_code", text)
    row |= {"aot_id": found.aot_id, "file": file if isinstance(file, str) else None}
    graph = process.add("graphs", record, compile, row)
    head = process.head(record, compile) | {"aot_id": found.aot_id}
    kernels = [asdict(kernel) | head for kernel in found.kernels]
    calls = [asdict(call) | head for call in found.calls]
    process.rows["generated_kernels"].extend(kernels)
    process.rows["kernel_calls"].extend(calls)
    if compile is not None:
        compile.add_code(CodeSection(graph, kernels, calls, [*compile.waiting]))


def _row(record: Record, kind: str, text: str) -> Row:
    return {"attempt": record.context.attempt, "kind": kind, "text": text}


def with_node_counts(graphs: pl.DataFrame) -> pl.DataFrame:
    """Table ``graphs`` with ``node_count``: here, since polars counts several times faster.

    A first line is asked for apart: a pattern that begins with a newline is found twice as fast.
    """
    counted = ~pl.col("kind").is_in(_NO_GRAPHS)
    text = pl.when(counted).then(pl.col("text"))
    is_first = text.str.contains(rf"\A{OPERATION_LINE}")
    nodes = text.str.count_matches(f"\n{OPERATION_LINE}") + is_first
    return graphs.with_columns(node_count=nodes.cast(pl.Int32))


_LIST = msgspec.json.Decoder(list[Any])


def collective_schedule(reader: Reader, record: Record) -> None:
    """``["torch.ops._c10d_functional.all_reduce.default", …]``."""
    process = reader.process
    found = decode(reader, record, record.payload, _LIST)
    if found is not None:
        row = {"pid": process.pid, "schedule": [str(item) for item in found]}
        process.add("collective_schedules", record, process.find(record), row)

"""Every kind of record that is known, and who reads it. The list to look at first.

A kind that is known and only counted has ``counted`` as its parser: nothing in it becomes a row.
Names of artifacts grow with every torch, so what is not listed is counted as unknown.
"""

from __future__ import annotations

import re

import msgspec

from traceview.parse.cutting import Record
from traceview.parse.structured import (
    breaks,
    caches,
    compiles,
    graphs,
    kernels,
    phases,
    settings,
    symbols,
)
from traceview.parse.structured.decode import decode
from traceview.parse.structured.state import Parser, Reader


class _Artifact(msgspec.Struct):
    name: str


ARTIFACT = msgspec.json.Decoder(_Artifact)
_STRING = msgspec.json.Decoder(tuple[str, int])


def string(reader: Reader, record: Record) -> None:
    """``[filename, number]``: stack frames name files by number from here on."""
    entry = decode(reader, record, record.body, _STRING)
    if entry is not None:
        reader.process.strings[entry[1]] = entry[0]


def counted(reader: Reader, record: Record) -> None:
    """Known, counted, not read; it may still be all that is left of its compile."""
    reader.process.find(record)


KEYS: dict[str, Parser] = {
    "str": string,
    "dynamo_start": compiles.dynamo_start,
    "compilation_metrics": compiles.compilation_metrics,
    "bwd_compilation_metrics": compiles.compilation_metrics,
    "compilation_metrics_runtime": counted,
    "bwd_compilation_metrics_runtime": counted,
    "chromium_event": phases.chromium_event,
    **dict.fromkeys(graphs.KEYS, graphs.graph),
    "inductor_output_code": graphs.output_code,
    **dict.fromkeys(symbols.EVENTS, symbols.symbol),
    "describe_storage": counted,
    "describe_tensor": counted,
    "describe_source": counted,
    "dynamo_cpp_guards_str": symbols.guard_tree,
    "dynamo_guards": counted,
    "dump_file": counted,
    "link": counted,
    "propagate_real_tensors": counted,
    "propagate_real_tensors_provenance": counted,
    "expression_created": counted,
    "guard_on_data_dependent_error": counted,
    "missing_fake_kernel": counted,
    "mismatched_fake_kernel": counted,
    "export": counted,
    "exported_program": counted,
}

ARTIFACTS: dict[str, Parser] = {
    "dynamo_graph_break_reason": breaks.graph_break,
    "recompile_reasons": breaks.recompile_reasons,
    "dynamo_error": compiles.dynamo_error,
    "inductor_provenance_tracking_kernel_stack_traces": kernels.kernel_stack_traces,
    "inductor_provenance_tracking_node_mappings": kernels.node_mappings,
    "torch_version": settings.torch_version,
    "dynamo_side_effects": counted,
    "aot_forward_graph_fw_metadata": counted,
    "torch._functorch.config": counted,
    "runtime_wrapper_orchestration": counted,
    "compiled_function_forward": counted,
    "compiled_function_backward": counted,
    "compiled_fn_wrapper": counted,
    "backward_prologue": counted,
    "backward_epilogue": counted,
    "triton_kernel_info": phases.triton_kernels,
    "inductor_runtime_and_tensor_meta": counted,
    "inductor_collective_schedule": graphs.collective_schedule,
    "graph_execution": counted,
    "min_cut_information": counted,
    "compiled_autograd_compile_reasons": counted,
    "compiler_collective": counted,
}

PATTERNS: tuple[tuple[re.Pattern[str], Parser], ...] = (
    (caches.PATTERN, caches.cache_artifact),
    (caches.CODE_STATE, caches.code_state_artifact),
    (graphs.ARTIFACTS, graphs.graph),
    (settings.WORLD_ARTIFACTS, settings.world_size),
    (re.compile(r".*_(?:ORIGINAL|MODIFIED)_BYTECODE"), counted),
)


def parser_of(key: str, name: str | None) -> Parser | None:
    """Who reads records of that envelope key, or artifacts of that name; None for unknown ones."""
    if key != "artifact":
        return KEYS.get(key)
    exact = ARTIFACTS.get(name or "")
    if exact is not None:
        return exact
    return next((parser for pattern, parser in PATTERNS if pattern.fullmatch(name or "")), None)

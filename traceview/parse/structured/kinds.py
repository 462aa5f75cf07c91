"""Every kind of record that is known, and who reads it. The list to look at first.

A kind that is known and only counted has ``counted`` as its parser: nothing in it becomes a row.
Names of artifacts grow with every torch, so what is not listed is counted as unknown.
"""

from __future__ import annotations

import re

import msgspec

from traceview.parse.cutting import Record
from traceview.parse.structured import (
    caches,
    compiles,
    dynamo,
    graphs,
    kernels,
    phases,
    settings,
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


#: Kinds, and artifacts, that are known and only counted.
_KEYS = """
    compilation_metrics_runtime bwd_compilation_metrics_runtime describe_storage describe_tensor
    describe_source dynamo_guards dump_file link propagate_real_tensors
    propagate_real_tensors_provenance expression_created guard_on_data_dependent_error
    missing_fake_kernel mismatched_fake_kernel export exported_program
"""
_ARTIFACTS = """
    dynamo_side_effects aot_forward_graph_fw_metadata torch._functorch.config
    runtime_wrapper_orchestration compiled_function_forward compiled_function_backward
    compiled_fn_wrapper backward_prologue backward_epilogue inductor_runtime_and_tensor_meta
    graph_execution min_cut_information compiled_autograd_compile_reasons compiler_collective
"""

KEYS: dict[str, Parser] = {
    **dict.fromkeys(_KEYS.split(), counted),
    "str": string,
    "dynamo_start": compiles.dynamo_start,
    "compilation_metrics": compiles.compilation_metrics,
    "bwd_compilation_metrics": compiles.compilation_metrics,
    "chromium_event": phases.chromium_event,
    **dict.fromkeys(graphs.KEYS, graphs.graph),
    "inductor_output_code": graphs.output_code,
    **dict.fromkeys(dynamo.SYMBOL_EVENTS, dynamo.symbol),
    "dynamo_cpp_guards_str": dynamo.guard_tree,
}

ARTIFACTS: dict[str, Parser] = {
    **dict.fromkeys(_ARTIFACTS.split(), counted),
    "dynamo_graph_break_reason": dynamo.graph_break,
    "recompile_reasons": dynamo.recompile_reasons,
    "dynamo_error": compiles.dynamo_error,
    "inductor_provenance_tracking_kernel_stack_traces": kernels.kernel_stack_traces,
    "inductor_provenance_tracking_node_mappings": kernels.node_mappings,
    "torch_version": settings.torch_version,
    "triton_kernel_info": phases.triton_kernels,
    "inductor_collective_schedule": graphs.collective_schedule,
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

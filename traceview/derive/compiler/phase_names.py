"""Which part of compiling a phase of torch's stands for; what has no name here is its parent's."""

from __future__ import annotations

import re
from functools import lru_cache

#: Order of the parts, as they follow each other in a compile.
PARTS = (
    "dynamo", "aot", "inductor", "scheduling", "codegen", "kernel_compile", "autotune",
    "cudagraph_recording", "backward", "first_run", "unexplained",
)  # fmt: skip
LABELS = {
    "dynamo": "Dynamo tracing",
    "aot": "AOTAutograd",
    "inductor": "Inductor lowering",
    "scheduling": "Inductor scheduling",
    "codegen": "code generation and loading",
    "kernel_compile": "Triton/C++ compile",
    "autotune": "autotuning",
    "cudagraph_recording": "cudagraphs (set-up and recording)",
    "backward": "backward compile",
    "first_run": "first run",
    "unexplained": "unexplained",
}
_EXACT = {
    "dynamo": "dynamo",
    "entire_frame_compile": "dynamo",
    "build_guards": "dynamo",
    "backend_compile": "aot",
    "create_aot_dispatcher_function": "aot",
    "min_cut_rematerialization_partition": "aot",
    "entire_backward_compile": "aot",
    "_recursive_joint_graph_passes": "inductor",
    "_recursive_pre_grad_passes": "inductor",
    "inductor_codecache_torch_key": "inductor",
    "inductor_compile": "inductor",
    "fx_codegen_and_compile": "inductor",
    "GraphLowering.run": "inductor",
    "Scheduler.__init__": "scheduling",
    "code_gen": "codegen",
    "GraphLowering.codegen": "codegen",
    "GraphLowering.compile_to_fn": "codegen",
    "Scheduler.codegen": "codegen",
    "PythonWrapperCodegen.generate": "codegen",
    "PyCodeCache.load_by_key_path": "codegen",
    "compile_file": "kernel_compile",
    "async_compile.wait": "kernel_compile",
    "async_compile.precompile": "kernel_compile",
    "TritonBundler.collect": "kernel_compile",
    "benchmark_fused_nodes": "autotune",
    "benchmark_codegened_module": "autotune",
}
_PATTERNS = (
    (re.compile(r"^triton: "), "kernel_compile"),
    (re.compile(r"_template_(?:precompiling|autotuning)$"), "autotune"),
    (re.compile(r"^CachingAutotuner\.(?:benchmark|coordinate)"), "autotune"),
    (re.compile(r"^cudagraphify|^CUDAGraphNode\.record"), "cudagraph_recording"),
    (re.compile(r"^aot_|^pass\.aot"), "aot"),
)


@lru_cache(4096)
def part_of(name: str, parent: str | None) -> str | None:
    """The part of a phase by its name, else ``parent`` (its parent's part)."""
    if name in _EXACT:
        return _EXACT[name]
    return next((part for pattern, part in _PATTERNS if pattern.search(name)), parent)

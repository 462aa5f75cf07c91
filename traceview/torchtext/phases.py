"""Names of torch's timed phases (``dynamo_timed``): what they are part of."""

from __future__ import annotations

import re
from functools import lru_cache

#: These begin no call of torch.compile's: AOTInductor, from a graph to a library; capturing a whole
#: function for torch.export.
AOT_INDUCTOR = "compile_fx_aot"
CAPTURE = "fullgraph_capture"
#: Part → names of its phases.
_NAMES = {
    "dynamo": "dynamo entire_frame_compile build_guards",
    "aot": """
        backend_compile create_aot_dispatcher_function min_cut_rematerialization_partition
        entire_backward_compile
    """,
    "inductor": """
        _recursive_joint_graph_passes _recursive_pre_grad_passes inductor_codecache_torch_key
        inductor_compile fx_codegen_and_compile GraphLowering.run
    """,
    "scheduling": "Scheduler.__init__",
    "codegen": """
        code_gen GraphLowering.codegen GraphLowering.compile_to_fn Scheduler.codegen
        PythonWrapperCodegen.generate PyCodeCache.load_by_key_path
    """,
    "kernel_compile": """
        compile_file async_compile.wait async_compile.precompile TritonBundler.collect
    """,
    "autotune": "benchmark_fused_nodes benchmark_codegened_module",
}
_EXACT = {name: part for part, names in _NAMES.items() for name in names.split()}
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

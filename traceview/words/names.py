"""torch's and our own names in words that a reader of PyTorch knows.

Reports that shorten a kernel's name keep the whole one next to it.
"""

from __future__ import annotations

import re

from traceview.torchtext.frames import resumed

CATEGORIES = {
    "gemm": "matrix products",
    "attention": "attention",
    "convolution": "convolution",
    "elementwise": "elementwise operators",
    "reduction": "reductions",
    "normalization": "normalization",
    "optimizer": "the optimizer's kernels",
    "communication": "communication",
    "indexing": "embedding and indexing",
    "copy": "copies and casts",
    "memset": "memory fills",
    "user_kernel": "user-defined kernels",
    "other": "other operators",
    "generated_pointwise": "generated pointwise",
    "generated_reduction": "generated reduction",
    "generated_persistent_reduction": "generated persistent reduction",
    "generated_template": "generated template",
    "generated_foreach": "generated foreach",
    "generated_other": "other generated kernels",
    "python": "Python between operators",
    "data_loading": "data loading",
    "graph_break": "Python of a graph break",
    "compile": "compiling",
    "compile_elsewhere": "another rank compiled",
    "gc": "garbage collection",
    "optimizer_python": "the optimizer's Python",
    "cpp": "generated C++",
    "overhead": "torch.compile's own work",
    "own": "traceview's own work",
    "launch": "launch calls",
    "machine_speed": "machine speed",
    "unexplained": "unexplained",
    "graph_launch": "cudagraph launches",
    "sync": "synchronising calls",
    "alloc": "allocator calls",
    "memcpy": "copy calls",
    "idle_launch_bound": "idle: waiting for launches",
    "idle_sync": "idle: host waits for the device",
    "idle_data_loading": "idle: waiting for data",
    "idle_guards": "idle: guard checks",
    "idle_call_overhead": "idle: entering compiled code",
    "idle_graph_break": "idle: Python of a graph break",
    "idle_compile": "idle: compiling",
    "idle_compile_elsewhere": "idle: another rank compiled",
    "idle_allocator": "idle: allocator",
    "idle_copy_wait": "idle: waiting for a copy",
    "idle_gc": "idle: garbage collection",
    "idle_communication": "idle: waiting for other ranks",
    "idle_python": "idle: other Python",
    "idle_device": "idle: gaps between queued kernels",
    "idle_inside_graph": "idle: inside a cudagraph",
    "idle_unlinked": "idle: cause not recorded",
    "overhead_cache_lookup": "overhead: guard checks",
    "overhead_pregraph_bytecode": "overhead: bytecode before the graph",
    "overhead_generated_wrapper": "overhead: generated wrapper code",
    "overhead_compiled_region": "overhead: entering compiled code",
    "overhead_runtime_wrappers": "overhead: AOTAutograd wrappers",
}
#: What an effect of the waterfall is called where it saves time, and where it costs time.
EFFECTS = {
    "fusion": ("fusion", "slower fused kernels"),
    "page_faults": ("less new memory touched", "more new memory touched"),
    "library_choice": ("faster library kernels", "slower library kernels"),
    "launches_saved": ("less launching", "more launching"),
    "cudagraphs": ("cudagraphs", "cudagraphs"),
    "less_work": ("less work", "more work"),
    "casts_saved": ("fewer casts", "more casts"),
    "overheads_added": ("less call overhead", "overhead of compiled calls"),
    "copies_added": ("fewer copies", "added copies"),
    "recompute": ("less recomputation", "recomputed activations"),
    "other_kernels": ("other kernels", "other kernels"),
    "other_idle": ("less other idle time", "more other idle time"),
    "machine_speed": ("machine speed at the windows", "machine speed at the windows"),
    "unexplained": ("unexplained", "unexplained"),
}
RECOMPILES = {
    "module_int": "int attribute of a module",
    "type_id": "type",
    "obj_id": "identity",
    "global_state": "global state",
    "shape_guard": "shape relation",
    "dispatch_keys": "dispatch keys",
}
GRAPHS = {
    "dynamo_output": "Dynamo's graph",
    "output_code": "generated code",
    "aot_joint": "joint graph",
    "aot_forward": "forward graph",
    "aot_backward": "backward graph",
    "aot_inference": "inference graph",
}
_TEMPLATE = re.compile(r"(?:void\s+)?(?:[\w~]+::|\(anonymous namespace\)::)*(\w+)\s*[<(]")
# What an aten kernel computes: a functor, or the host function whose lambda it runs.
_COMPUTES = re.compile(r"\b(\w*[fF]unctor\w*|\w+Ops?)(?=<)|\b(\w+)(?=\((?:at|c10)::)")
_WRAPPERS = re.compile(r"(?:Binary|[AB]?Unary)Functor|ReduceOp|operator")
_NAMESPACE = re.compile(r"(?:\b[A-Za-z_]\w*::|\(anonymous namespace\)::)+")
_ATEN = re.compile(r"aten(?:\.|::)(\w+)(?:\.\w+)?")
_SHORT, _LONG = 40, 64


def category(name: str) -> str:
    """A category of the accounting as words: ``idle: waiting for launches``."""
    if name in CATEGORIES:
        return CATEGORIES[name]
    for kind in ("idle", "overhead"):
        if name.startswith(f"{kind}_"):
            return f"{kind}: " + name[len(kind) + 1 :].replace("_", " ")
    return name.replace("_", " ")


def effect(name: str, ms: float, what: str | None = None) -> str:
    """An effect of the waterfall: ``fusion``, or ``slower fused kernels`` where it costs time.

    ``ms`` is compiled less eager; ``what`` the category of the accounting that the effect is about.
    """
    if what is not None:
        return cause(what)
    saves, costs = EFFECTS.get(name, (name.replace("_", " "),) * 2)
    return costs if ms > 0 else saves


def cause(name: str) -> str:
    """A category of idle time or overhead by what causes it: ``guard checks``."""
    label = category(name)
    return label.removeprefix("idle: ").removeprefix("overhead: ")


def what(said: str) -> str:
    """A category as words, an operator or a call as it is, a kernel's name in short."""
    if said in CATEGORIES or said.startswith(("idle_", "overhead_", "generated_")):
        return category(said)
    return kernel(said)


def operator(name: str) -> str:
    """``mul`` of ``aten.mul``, ``aten::mul`` or ``aten.mul.Tensor``; others keep their library."""
    match = _ATEN.fullmatch(name)
    return match.group(1) if match else name


def recompile(kind: str) -> str:
    """What kind of guard failed: ``int attribute of a module``."""
    return RECOMPILES.get(kind, kind.replace("_", " "))


def graph(kind: str) -> str:
    """What a graph is: ``generated code``, ``forward graph``."""
    return GRAPHS.get(kind, kind.replace("_", " "))


def function(co_name: str | None) -> str:
    """``forward()``; code after a graph break is ``forward() (resumed after line 15)``."""
    rest = resumed(co_name)
    if rest:
        return f"{rest.function}() (resumed after line {rest.line})"
    return f"{co_name}()" if co_name else "a function"


def kernel(name: str) -> str:
    """A C++ kernel's name in short: ``elementwise_kernel · sigmoid_kernel_cuda``.

    Names without template arguments (Triton's, cuBLAS') stay as they are, cut only when very long.
    """
    head = name[:2000]
    if len(name) <= _SHORT:
        return name
    match = _TEMPLATE.match(head)
    # A mark of the profiler may look like a call: enumerate(DataLoader)#….__next__
    if match is None or not ("<" in head or head.startswith("void ")):
        return head if len(name) <= 2 * _LONG else f"{head[:_LONG]}…{name[-20:]}"
    outer = match.group(1)
    inside = (one or other for one, other in _COMPUTES.findall(head[match.end() :]))
    told = next((found for found in inside if not _WRAPPERS.fullmatch(found)), None)
    if told and told != outer:
        return f"{outer} · {told}"
    short = _NAMESPACE.sub("", head.removeprefix("void ")).partition("(")[0]
    return short if len(short) <= _LONG else outer

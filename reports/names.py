"""The profiler's and torch's own names as words that a reader of PyTorch knows.

Nothing is lost: reports that shorten a kernel's name keep the whole one beside it.
"""

from __future__ import annotations

import re

CATEGORIES = {
    "gemm": "matrix products",
    "copy": "copies",
    "memset": "memory fills",
    "other": "other operators",
    "python": "Python and other host time",
    "cpp": "generated C++",
    "idle_launch_bound": "idle: waiting for launches",
    "idle_launch_in_flight": "idle: launch on its way",
    "idle_sync": "idle: host waits for the device",
    "idle_device": "idle: between queued kernels",
    "idle_inside_graph": "idle: inside a cudagraph",
    "idle_unlinked": "idle: cause not recorded",
    "idle_window_start": "idle: before the first kernel",
    "idle_no_more_work": "idle: nothing was queued",
    "overhead_cache_lookup": "overhead: guard checks",
    "overhead_pregraph_bytecode": "overhead: bytecode before the graph",
    "overhead_generated_wrapper": "overhead: generated wrapper code",
    "overhead_compiled_region": "overhead: entering compiled code",
    "overhead_runtime_wrappers": "overhead: AOTAutograd wrappers",
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
_SHORT, _LONG = 40, 64


def category(name: str) -> str:
    """A category of the accounting as words: ``idle: waiting for launches``."""
    if name in CATEGORIES:
        return CATEGORIES[name]
    for kind in ("idle", "overhead"):
        if name.startswith(f"{kind}_"):
            return f"{kind}: " + name[len(kind) + 1 :].replace("_", " ")
    return name.replace("_", " ")


def recompile(kind: str) -> str:
    """What kind of guard failed: ``int attribute of a module``."""
    return RECOMPILES.get(kind, kind.replace("_", " "))


def graph(kind: str) -> str:
    """What a graph is: ``generated code``, ``forward graph``."""
    return GRAPHS.get(kind, kind.replace("_", " "))


def kernel(name: str) -> str:
    """A C++ kernel's name in short: ``elementwise_kernel · sigmoid_kernel_cuda``.

    Names without template arguments (Triton's, cuBLAS') stay as they are, cut only when very long.
    """
    head = name[:2000]
    if len(name) <= _SHORT:
        return name
    match = _TEMPLATE.match(head)
    if match is None:
        return head if len(name) <= 2 * _LONG else f"{head[:_LONG]}…{name[-20:]}"
    outer = match.group(1)
    inside = (one or other for one, other in _COMPUTES.findall(head[match.end() :]))
    told = next((found for found in inside if not _WRAPPERS.fullmatch(found)), None)
    if told and told != outer:
        return f"{outer} · {told}"
    short = _NAMESPACE.sub("", head.removeprefix("void ")).partition("(")[0]
    return short if len(short) <= _LONG else outer

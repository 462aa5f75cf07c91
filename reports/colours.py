"""Classes of report.css (less their ``f-``) that colour categories, effects and phases."""

from __future__ import annotations

from traceview.derive.causes import UNEXPLAINED, UNNAMED

# What is not among the phases is "rest".
_PHASES = {
    "dynamo": "elem",
    "aot": "norm",
    "inductor": "gemm",
    "scheduling": "attn",
    "codegen": "gen1",
    "kernel_compile": "gen2",
    "autotune": "opti",
    "backward": "conv",
    "cudagraph_recording": "comm",
    "first_run": "indx",
    "unexplained": "unex",
}
# Idle time is hatched always; its cause tints it.
_IDLE = {
    "idle_sync": "idle-sync",
    "idle_copy_wait": "idle-sync",
    "idle_communication": "idle-sync",
    "idle_python": "idle-py",
    "idle_graph_break": "idle-py",
    "idle_gc": "idle-py",
    "idle_custom_op": "idle-py",
    "idle_guards": "idle-call",
    "idle_call_overhead": "idle-call",
    "idle_compile": "idle-call",
    "idle_cudagraph_recording": "idle-call",
    "idle_search": "idle-call",
    "idle_compile_elsewhere": "idle-sync",
    "idle_data_loading": "idle-data",
    "idle_allocator": "idle-data",
}
_CATEGORIES = (
    ("generated_pointwise", "gen1"),
    ("generated_persistent", "gen3"),
    ("generated_reduction", "gen2"),
    ("generated", "gen4"),
    ("gemm", "gemm"),
    ("attention", "attn"),
    ("convolution", "conv"),
    ("elementwise", "elem"),
    ("reduction", "redu"),
    ("normalization", "norm"),
    ("indexing", "indx"),
    ("optimizer", "opti"),
    ("copy", "copy"),
    ("memset", "copy"),
    ("communication", "comm"),
    ("user_kernel", "user"),
    ("data_loading", "load"),
    ("graph_break", "brea"),
    ("compile", "comp"),
    ("python", "pyth"),
    ("sync", "idle-sync"),
    ("alloc", "idle-data"),
)


def family(category: str, kind: str = "busy") -> str:
    """The class of a category; idle and overhead are hatched."""
    if kind in UNNAMED or category == UNEXPLAINED:
        return "unex"
    if kind == "idle" or category.startswith("idle"):
        return _IDLE.get(category, "idle")
    if kind == "overhead" or category.startswith("overhead"):
        return "over"
    return next((name for prefix, name in _CATEGORIES if category.startswith(prefix)), "rest")


def effect(name: str, ms: float) -> str:
    """The class of an effect of the waterfall: by its sign, unless it is of no cause."""
    return "unex" if name in UNNAMED else "less" if ms < 0 else "more"


def generated(category: str) -> str:
    """``family`` of a generated kernel, whose category is torch's own: pointwise, reduction, …"""
    return family(category if category.startswith("generated") else f"generated_{category}")


def phase(name: str) -> str:
    """The class of a phase of compiling."""
    return _PHASES.get(name.removesuffix("_s"), "rest")

"""Figures and names as a person reads them."""

from __future__ import annotations

CATEGORIES = {
    "gemm": "matrix multiplication",
    "attention": "attention",
    "convolution": "convolution",
    "elementwise": "elementwise operators",
    "reduction": "reductions",
    "normalization": "normalisation",
    "indexing": "indexing",
    "optimizer": "the optimizer",
    "copy": "copies",
    "memset": "memory fills",
    "communication": "communication",
    "other": "other operators",
    "generated_pointwise": "generated pointwise kernels",
    "generated_reduction": "generated reduction kernels",
    "generated_persistent_reduction": "generated persistent reduction kernels",
    "generated_template": "generated templates",
    "generated_foreach": "generated foreach kernels",
    "generated_other": "generated kernels",
    "user_kernel": "user-defined kernels",
    "idle_launch_bound": "idle time waiting for launches",
    "idle_sync": "idle time through synchronisation",
    "idle_data_loading": "idle time waiting for data",
    "idle_guards": "idle time during guard evaluation",
    "idle_call_overhead": "idle time entering compiled code",
    "idle_graph_break": "idle time in Python at graph breaks",
    "idle_compile": "idle time while compiling",
    "idle_compile_elsewhere": "idle time while another rank compiled",
    "idle_allocator": "idle time in the allocator",
    "idle_copy_wait": "idle time waiting for copies to the device",
    "idle_gc": "idle time during garbage collection",
    "idle_communication": "idle time waiting for other ranks",
    "idle_python": "idle time in other Python",
    "idle_device": "idle time between queued kernels",
    "idle_inside_graph": "idle time inside cudagraphs",
    "idle_unlinked": "idle time of unknown cause",
    "overhead_cache_lookup": "guard evaluation",
    "overhead_pregraph_bytecode": "pre-graph bytecode",
    "overhead_generated_wrapper": "generated wrapper code",
    "overhead_compiled_region": "entering compiled regions",
    "overhead_runtime_wrappers": "AOTAutograd's runtime wrappers",
    "data_loading": "data loading",
    "graph_break": "Python at graph breaks",
    "compile": "compiling",
    "compile_elsewhere": "standing still while another rank compiled",
    "gc": "garbage collection",
    "optimizer_python": "the optimizer's Python",
    "python": "Python and other host time",
    "machine_speed": "the machine's speed around the profiler window",
    "unexplained": "what is unexplained",
    "sync": "calls that wait for the device",
    "alloc": "calls that allocate memory",
    "graph_launch": "launches of cudagraphs",
}


def milliseconds(value: float) -> str:
    """Three significant digits, or three decimals below 1 ms: 0.050 ms, 1.20 ms, 345 ms, 12.3 s."""
    if value >= 10_000:
        return f"{value / 1000:.3g} s"
    if value >= 100:
        return f"{value:.0f} ms"
    if value < 0.01:
        return microseconds(value)
    return f"{value:.{3 if value < 1 else 2 if value < 10 else 1}f} ms"


def microseconds(value_ms: float) -> str:
    """Milliseconds as ``4.74 µs``."""
    return f"{value_ms * 1000:.3g} µs"


def side_by_side(*values_ms: float) -> tuple[str, ...]:
    """Times that are to be compared: all in microseconds where one of them needs that unit."""
    small = 0.0 < min(values_ms) < 0.01 and max(values_ms) < 1
    return tuple((microseconds if small else milliseconds)(value) for value in values_ms)


def ratio(value: float) -> str:
    """6.9, 1.04, 12: two decimals where the second one matters; below 0.1 two digits: 0.00075."""
    if 0 < value < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 2 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def count(value: float) -> str:
    """35, or 35.5 where a step does not always do the same."""
    return f"{value:.0f}" if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def category(name: str) -> str:
    """``gemm`` as ``matrix multiplication``; an unknown name without its underscores."""
    return CATEGORIES.get(name, name.replace("_", " "))


def plural(number: int, noun: str) -> str:
    """1 step, 2,000 steps."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"

"""torch's and our own names in words that a reader of PyTorch knows.

Reports that shorten a kernel's name keep the whole one next to it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping

from traceview.torchtext.frames import NOTEBOOK_CELL, resumed
from traceview.words.numbers import MISSING

#: Categories of the accounting. ``category`` puts "idle:" or "overhead:" before those that are.
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
    "unlisted": "operators of other kinds",
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
    "idle_launch_bound": "waiting for launches",
    "idle_sync": "host waits for the device",
    "idle_data_loading": "waiting for data",
    "idle_guards": "guard checks",
    "idle_call_overhead": "entering compiled code",
    "idle_graph_break": "Python of a graph break",
    "idle_compile": "compiling",
    "idle_cudagraph_recording": "recording cudagraphs",
    "idle_compile_elsewhere": "another rank compiled",
    "idle_allocator": "allocator",
    "idle_copy_wait": "waiting for a copy",
    "idle_gc": "garbage collection",
    "idle_custom_op": "custom operator",
    "idle_search": "library search for algorithms",
    "idle_communication": "waiting for other ranks",
    "idle_python": "other Python",
    "idle_device": "gaps between queued kernels",
    "idle_inside_graph": "inside a cudagraph",
    "idle_unlinked": "cause not recorded",
    "overhead_cache_lookup": "guard checks",
    "overhead_pregraph_bytecode": "bytecode before the graph",
    "overhead_generated_wrapper": "generated wrapper code",
    "overhead_compiled_region": "entering compiled code",
    "overhead_runtime_wrappers": "AOTAutograd wrappers",
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
    "small_parts": ("smaller parts", "smaller parts"),
    "compiling_again": ("less compiling", "compiling again and again"),
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
#: Parts of compiling, in the order in which they follow each other.
PHASES = {
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
CACHES = {
    "fx_graph": "FX graph cache",
    "fx_graph_bundled": "bundled FX graph cache",
    "aotautograd": "AOTAutograd cache",
    "autotune": "autotune cache",
    "dynamo": "precompile cache",
    "pgo": "PGO state",
}
#: How sure a figure is.
CONFIDENCE = {
    "measured": "measured: the figure was timed",
    "derived": "derived: computed from recorded facts",
    "heuristic": "heuristic: a pattern that usually means this",
}
CLOCKS = {"device": "device clock", "host": "host clock"}
#: Parts of the way from a compiled call into its generated code.
CALL_PARTS = {
    "cache_lookup": "cache look-up",
    "pregraph_bytecode": "bytecode before the graph",
    "runtime_wrappers": "AOTAutograd's runtime wrappers",
    "generated_wrapper": "generated wrapper code",
    "compiled_region": "inside the compiled region",
    "cudagraph_replay": "cudagraph replay",
}
#: What a group of matched kernels is made of.
GROUPS = {
    "fused": "generated kernels",
    "library": "library kernels",
    "same": "unchanged, outside graphs",
    "eager_only": "eager only",
    "compiled_only": "compiled only",
}
#: What two kernels, or a kernel and a source line, are matched by.
JOINS = {
    "line": "source line",
    "forward": "line of the forward operator",
    "operator": "operator name",
    "provenance": "the compiler's provenance log",
    "comment": "comment in the generated code",
    "name": "kernel name",
    "order": "order and name within the graph",
}
BOUNDS = {
    "memory": "memory",
    "cache": "cache",
    "memory_or_cache": "memory or cache: the data may be in either",
    "compute": "compute",
    "overhead": "overhead: too short to reach either",
    "neither": "neither: below half of both",
}
#: What bounds a kernel, as this device measured it.
CEILINGS = {
    "copy": "copy",
    "l2_copy": "copy within L2",
    "launch": "launch",
    "kernel_gap": "gap between kernels",
    "page_fault": "first touch of a page",
}
#: Where the bytes or operations of a kernel come from.
SOURCES = {
    "generated_code": "generated code",
    "input_dims": "recorded input shapes",
    "copy": "size of the copy",
    "host_copy": "size of the copy",
    "graph_metadata": "shapes in the graph",
    "num_bytes_accessed": "Inductor's own estimate",
    "user_declared": "declared by the user",
}
FUSION = {
    "fused": "fused",
    "refused": "not fused",
    "epilogue_fused": "epilogue fused into a matrix product",
    "epilogue_apart": "epilogue not fused",
    "epilogue_not_tried": "epilogue fusion not tried",
    "prologue_fused": "prologue fused into a matrix product",
    "prologue_apart": "prologue not fused",
    "prologue_not_tried": "prologue fusion not tried",
    "hint": "hint",
    "fallback": "runs as eager's kernel",
}
#: Why a function of a job took long to compile.
JOB_CAUSES = {
    "recompiles": "recompiled",
    "cache_miss": "cache missed",
    "cache_bypass": "cache bypassed",
    "first_compile": "first compile",
    "autotuning": "autotuning",
    "graph_breaks": "graph breaks",
    "failed": "failed",
    "limit": "recompile limit",
    "phase": "mostly one phase",
}
#: In what ranks differ.
DIFFERENCES = {
    "frames": "different functions compiled",
    "graph": "different graphs",
    "guards": "different guards",
    "collectives": "different order of collectives",
    "settings": "settings",
    "inputs": "inputs",
    "versions": "versions",
    "folder": "cache folder",
}
#: How a compile that failed ended.
FAILURES = {"failed": "Failed", "limit": "Recompile limit", "unfinished": "Never finished"}
FILES = {
    "structured": "structured log",
    "textlog": "text log",
    "stderr": "stderr",
    "kineto": "profiler trace",
    "chromium": "Chromium events",
    "events": "events of traceview",
    "manifest": "manifest",
    "empty": "empty",
    "unknown": "no log",
}
#: What a compared run was read from.
RUNS = {"run": "run folder", "postmortem": "post-mortem", "diagnosis": "diagnosis in JSON"}
#: Facts of the environment.
FACTS = {
    "torch_version": "torch",
    "triton_version": "triton",
    "cuda_version": "CUDA",
    "driver_version": "driver",
    "python_version": "Python",
    "platform": "platform",
    "device_name": "device",
    "device_count": "devices",
    "device_capability": "compute capability",
    "cpu_name": "CPU",
    "cpu_threads": "CPU threads",
    "argv": "command line",
    "cwd": "working directory",
    "ranks": "ranks",
    "rank": "rank of the figures",
    "step_kind": "a step begins with",
    "steps_seen": "steps seen",
}
_TEMPLATE = re.compile(r"(?:void\s+)?(?:[\w~]+::|\(anonymous namespace\)::)*(\w+)\s*[<(]")
# What an aten kernel computes: a functor, or the host function whose lambda it runs.
_COMPUTES = re.compile(r"\b(\w*[fF]unctor\w*|\w+Ops?)(?=<)|\b(\w+)(?=\((?:at|c10)::)")
_WRAPPERS = re.compile(r"(?:Binary|[AB]?Unary)Functor|ReduceOp|operator")
_NAMESPACE = re.compile(r"(?:\b[A-Za-z_]\w*::|\(anonymous namespace\)::)+")
_ATEN = re.compile(r"aten(?:\.|::)(\w+)(?:\.\w+)?")
_SHORT, _LONG = 40, 64


def word(known: Mapping[str, str], name: str | None) -> str:
    """The words for ``name`` in one of the vocabularies; an unknown one without underscores."""
    return MISSING if name is None else known.get(name, name.replace("_", " "))


def kind_of(name: str) -> str | None:
    """``idle`` or ``overhead`` for a category that is one by its name, else None."""
    return next((kind for kind in ("idle", "overhead") if name.startswith(f"{kind}_")), None)


def category(name: str) -> str:
    """A category of the accounting as words: ``idle: waiting for launches``."""
    kind = kind_of(name)
    return f"{kind}: {cause(name)}" if kind else word(CATEGORIES, name)


def cause(name: str) -> str:
    """A category of idle time or overhead by what causes it: ``guard checks``."""
    kind = kind_of(name)
    bare = name.removeprefix(f"{kind}_") if kind else name
    return CATEGORIES.get(name) or bare.replace("_", " ")


def effect(name: str, ms: float, what: str | None = None) -> str:
    """An effect of the waterfall: ``fusion``, or ``slower fused kernels`` where it costs time.

    ``ms`` is compiled less eager; ``what`` the category of the accounting that the effect is about.
    """
    if what is not None:
        return cause(what)
    saves, costs = EFFECTS.get(name, (name.replace("_", " "),) * 2)
    return costs if ms > 0 else saves


def phase(name: str) -> str:
    """A column of compile seconds: ``dynamo_s`` and ``dynamo`` are the same.

    Unlike the part of the first call of that name, ``inductor`` is all of Inductor here.
    """
    bare = name.removesuffix("_s")
    return "Inductor" if bare == "inductor" else word(PHASES, bare)


def cache(name: str) -> str:
    """A cache with its owner: ``FX graph cache``."""
    return CACHES.get(name) or f"{name.replace('_', ' ')} cache"


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
    return word(RECOMPILES, kind)


def signal_name(number: int | None) -> str:
    """``SIGKILL``, or ``signal 65`` where it has no name."""
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"


def graph(kind: str) -> str:
    """What a graph is: ``generated code``, ``forward graph``."""
    return word(GRAPHS, kind)


def function(co_name: str | None) -> str:
    """``forward()``; code after a graph break is ``forward() (resumed after line 15)``."""
    rest = resumed(co_name)
    if rest:
        return f"{rest.function}() (resumed after line {rest.line})"
    return f"{co_name}()" if co_name else "a function"


def at_line(file: str, *lines: int) -> str:
    """``train.py:41``, ``train.py:41, 42``; of a notebook ``nb.ipynb, cell 4, line 7``."""
    numbers = ", ".join(map(str, lines))
    cell = NOTEBOOK_CELL.fullmatch(file)
    if cell is None:
        return f"{file}:{numbers}"
    return f"{cell['notebook']}, cell {cell['cell']}, line{'s' * (len(lines) > 1)} {numbers}"


def lines(first: int, last: int) -> str:
    """``line 7``, ``lines 7 to 9``."""
    return f"line {first}" if first == last else f"lines {first} to {last}"


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

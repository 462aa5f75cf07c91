"""Derived tables that explain a step: details of its accounting, matches, effects, limits, call path.

Milliseconds are per step. ``ms`` is on the step as timed without a profiler, ``profiled_ms`` as the
profiler window has it; ``clock`` says by which clock.
"""

from __future__ import annotations

import polars as pl

from traceview.schema.columns import COMPILE, Column, table

_STANCE = Column("stance", pl.String, "compiled or eager")
_FILE = Column("file", pl.String, "user's own file")
_LINE = Column("line", pl.Int32, "line there")
_HOW = Column("how", pl.String, "what the join rests on")

OP_SOURCES = table("op_sources", "one operator of a timing window with the user's line that ran it",
    _STANCE,
    Column("op_id", pl.Int64, "see cpu_ops"),
    Column("line_op_id", pl.Int64, "the same operator in line_ops; null if joined by its forward only"),
    _FILE,
    _LINE,
    Column("how", pl.String, "line (the lines window saw it), forward (backward operator: the line of its forward), frame (of a compiled frame: no line)"),
)

ACCOUNT_DETAILS = table("account_details", "what one category of accounting consists of: a call, an operator or a line",
    _STANCE,
    Column("category", pl.String, "as in accounting"),
    Column("what", pl.String, "kernel, runtime call, operator, or words for Python time"),
    _FILE,
    _LINE,
    Column("in_graph", pl.Boolean, "an operator of a compiled graph ran it: where it held the host, the line is that of the graph's nodes, or of the graph's call"),
    Column("ms", pl.Float64, "per step, on the step as timed"),
    Column("profiled_ms", pl.Float64, "per step, as profiled"),
    Column("count", pl.Float64, "times per step; null: not counted (launch latency, the device's own doing)"),
    Column("clock", pl.String, "device or host"),
)

MATCHED_KERNELS = table("matched_kernels", "one kernel (on a CPU: operator) of one stance at one line, in its group",
    Column("group_id", pl.Int32, "see match_groups"),
    _STANCE,
    Column("name", pl.String, "as in kernel_groups"),
    Column("category", pl.String, "as in kernels"),
    Column("cpu_op", pl.String, "operator that launched it"),
    _FILE,
    _LINE,
    Column("compile_id", pl.String, "of the graph it runs in; null in eager code"),
    Column("graph_key", pl.String, "FX graph cache key"),
    Column("aot_id", pl.String, "0_inference, 0_forward, 0_backward; null in eager code"),
    Column("source_nodes", pl.List(pl.String), "traced nodes that it computes"),
    Column("ops", pl.List(pl.String), "aten operators that it computes"),
    Column("shape", pl.String, "of a library's work: MxN, K of a product (M the smaller), else sizes of its operands"),
    Column("dtype", pl.String, "of a library's first operand"),
    Column("layout", pl.String, "how a library's operands lie in memory: contiguous, transposed, channels last, strides; with gaps"),
    Column("count", pl.Float64, "executions per step"),
    Column("ms", pl.Float64, "per step, as profiled"),
    Column("clock", pl.String, "device or host"),
    Column("how", pl.String, "outside compiled graphs: line (of the lines window), forward (line of the forward), operator (n-th of its name in the traced graph, or its name alone); inside: provenance, comment, name (all calls of the name), order (in a cudagraph), operator (shape alone); null: not traced to anything"),
)

MATCH_GROUPS = table("match_groups", "eager kernels and the compiled ones that replaced them: the smallest sets that belong together",
    Column("group_id", pl.Int32, "numbered from 0, slowest first"),
    Column("kind", pl.String, "fused (generated kernels), library (GEMM, convolution, attention), same (unchanged operators outside graphs), eager_only, compiled_only"),
    Column("matched", pl.Boolean, "both sides are there"),
    Column("eager_kernels", pl.Float64, "executions per step"),
    Column("eager_ms", pl.Float64, "per step, as profiled"),
    Column("compiled_kernels", pl.Float64, "executions per step"),
    Column("compiled_ms", pl.Float64, "per step, as profiled"),
    Column("eager_casts_ms", pl.Float64, "of eager_ms: copies that change the dtype"),
    Column("ops", pl.List(pl.String), "aten operators"),
    Column("shape", pl.String, "as in matched_kernels, where all have the same"),
    Column("lines", pl.List(pl.String), "file:line of the user's source"),
    Column("compile_ids", pl.List(pl.String), "graphs on the compiled side"),
    Column("clock", pl.String, "device or host"),
    Column("how", pl.String, "weakest join in the group: line, forward, provenance, comment, operator, name, order"),
)

SHAPE_GAINS = table("shape_gains", "what another way to do the step's heaviest library work saves, measured on its own shapes",
    Column("kind", pl.String, "gemm, convolution or attention"),
    Column("way", pl.String, "as in shape_trials"),
    Column("dtype", pl.String, "in the step"),
    Column("shapes", pl.Int32, "shapes that were timed both ways"),
    Column("base_ms", pl.Float64, "per step as it is"),
    Column("ms", pl.Float64, "per step the other way"),
    Column("share", pl.Float64, "part of base_ms that the other way saves"),
    Column("clock", pl.String, "device or host"),
)

LIBRARY_PAIRS = table("library_pairs", "the same work of a library (product, convolution, attention, or an operator without generated code), or of the user's own kernel, in both stances, largest loss first",
    Column("group_id", pl.Int32, "see match_groups"),
    Column("kind", pl.String, "gemm, convolution, attention, user_kernel (paired by its name), or the operator"),
    Column("shape", pl.String, "in eager, as in matched_kernels"),
    Column("compiled_shape", pl.String, "in the compiled step, where it is another"),
    Column("backward", pl.Boolean, "whether it is a backward's"),
    _FILE,
    _LINE,
    Column("eager_count", pl.Float64, "executions of the slowest kernel per step"),
    Column("compiled_count", pl.Float64, "the same compiled"),
    Column("eager_ops", pl.List(pl.String), "operators that launch its kernels"),
    Column("compiled_ops", pl.List(pl.String), "the same compiled"),
    Column("eager_kernels", pl.List(pl.String), "slowest first"),
    Column("compiled_kernels", pl.List(pl.String), "the same compiled"),
    Column("eager_dtype", pl.String, "as in matched_kernels; null where calls differ or it is not recorded"),
    Column("compiled_dtype", pl.String, "the same compiled"),
    Column("eager_layout", pl.String, "as in matched_kernels; null where calls differ or it is not recorded"),
    Column("compiled_layout", pl.String, "the same compiled"),
    Column("eager_ms", pl.Float64, "per step"),
    Column("compiled_ms", pl.Float64, "per step"),
    Column("ms", pl.Float64, "compiled less eager"),
    Column("float64_arguments", pl.List(pl.String), "of a user_kernel: numbers that compiled code passes as float64"),
    Column("differs", pl.List(pl.String), "what is not the same: padded (another shape), generated (no library any more), operator, dtype, layout, kernel; of a user_kernel: float64 (numbers that it takes), launch (programs or threads)"),
    Column("clock", pl.String, "device or host"),
)

WATERFALL = table("waterfall", "one named effect between the eager median and the compiled one; their sum is the difference",
    Column("order", pl.Int32, "as they are shown, from 0"),
    Column("effect", pl.String, "fusion, page_faults, library_choice, launches_saved, cudagraphs, less_work, casts_saved, overheads_added, copies_added, recompute, other_kernels, other_idle, unexplained"),
    Column("ms", pl.Float64, "compiled less eager, per step: negative is time saved"),
    Column("eager_ms", pl.Float64, "its time in eager; null if eager has no such part, or only the difference is known"),
    Column("compiled_ms", pl.Float64, "and in the compiled step"),
    Column("clock", pl.String, "device or host"),
    Column("confidence", pl.String, "measured (differences of accounting rows) or derived (rests on a match, a graph or a count)"),
)

WATERFALL_ROWS = table("waterfall_rows", "one part of an effect of the waterfall",
    Column("effect", pl.String, "see waterfall"),
    Column("group_id", pl.Int32, "see match_groups; null where it is no kernel"),
    Column("what", pl.String, "kernels (eager → compiled), category of accounting, or launches"),
    _FILE,
    _LINE,
    Column("eager_ms", pl.Float64, "per step; null as in waterfall"),
    Column("compiled_ms", pl.Float64, "per step; null as in waterfall"),
    Column("ms", pl.Float64, "compiled less eager"),
)

KERNEL_LIMITS = table("kernel_limits", "one kernel (on a CPU: operator) of one stance at one shape compared with what the device can do; the kernels of a library operator are one row, named after the longest",
    _STANCE,
    Column("name", pl.String, "as in kernel_groups"),
    Column("category", pl.String, "as in kernels"),
    Column("compile_id", pl.String, "for generated kernels"),
    Column("shapes", pl.String, "of its tensors, as far as known"),
    Column("dtype", pl.String, "in which it computes: float32, bfloat16, …"),
    Column("count", pl.Float64, "executions per step (of the operator, where its kernels are one row)"),
    Column("kernels", pl.Float64, "device executions (on a CPU: operators) in one of count"),
    Column("ms", pl.Float64, "per step, as profiled"),
    Column("clock", pl.String, "device or host"),
    Column("bytes", pl.Int64, "least bytes one execution moves; null: not known"),
    Column("bytes_kind", pl.String, "exact; at_least (the size of an output is not known); at_most (read through an index, all places taken to be different)"),
    Column("bytes_from", pl.String, "generated_code, input_dims, copy, host_copy (one end is the host: no ceiling of the device applies)"),
    Column("flops", pl.Int64, "floating-point operations of one execution; null: not known"),
    Column("flops_kind", pl.String, "exact; at_most (a convolution larger than 1×1: Winograd's way and an FFT need fewer)"),
    Column("flops_from", pl.String, "input_dims, generated_code"),
    Column("gb_s", pl.Float64, "achieved, 1e9 bytes a second"),
    Column("tflop_s", pl.Float64, "achieved, 1e12 operations a second"),
    Column("floor_ms", pl.Float64, "per step, what it takes at least: the larger of bytes and operations over their ceilings; null: neither has a known one"),
    Column("of_ceiling", pl.Float64, "part of the ceiling that it reaches, at most 1; null: not known which ceiling decides"),
    Column("bound", pl.String, "memory, cache or compute (at least half of that ceiling; cache also where it is faster than a copy in memory), memory_or_cache (at least half of that, and it fits in the cache), overhead (too short to reach either), neither (instructions, latency or occupancy); null: not known"),
    Column("ceiling", pl.String, "which ceiling decides: copy, l2_copy, matmul_<dtype>"),
    Column("ceiling_from", pl.String, "measured, or kernel: a kernel of the run reached more than was measured"),
)

STEP_LIMITS = table("step_limits", "one stance's step compared with the limits of the device",
    _STANCE,
    Column("step_ms", pl.Float64, "as timed"),
    Column("busy_ms", pl.Float64, "device busy (on a CPU: operators)"),
    Column("known_ms", pl.Float64, "of it in kernels whose bytes or operations are known; a convolution that may need fewer operations is none"),
    Column("limit_ms", pl.Float64, "what the step takes at least: kernels at their floors without what fusing spares; copies, unknown kernels and idle time count as nothing; null: not known"),
    Column("fusible_ms", pl.Float64, "most that fusing the generated kernels with each other and with the library kernels next to them could save; null: no generated code"),
    Column("idle_ms", pl.Float64, "device idle; null on a CPU"),
    Column("launch_idle_ms", pl.Float64, "of it launch-bound"),
)

FUSION_NOTES = table("fusion_notes", "one note on fusion in one graph, in the user's terms",
    *COMPILE,
    Column("kind", pl.String, "fused, refused, epilogue_ or prologue_ with fused, apart (tried, or lost to the library's GEMM), not_tried; fallback, hint"),
    Column("text", pl.String, "one sentence"),
    Column("reason", pl.String, "torch's own words"),
    Column("kernels", pl.List(pl.String), "kernels that it is about"),
    Column("ops", pl.List(pl.String), "aten operators that it is about"),
    Column("lines", pl.List(pl.String), "file:line of the user's source"),
    Column("bytes_saved", pl.Int64, "bytes a call that fusing saves or would save, against one kernel for each operation of the lowered graph; null: not known"),
    Column("setting", pl.String, "which setting would change it"),
    Column("times", pl.Int32, "how often"),
)

GRAPH_PASSES = table("graph_passes", "one pass over one graph: what it changed",
    *COMPILE,
    Column("aot_id", pl.String, "0_inference, 0_forward, …; null where unknown"),
    Column("stage", pl.String, "capture, pre_grad, aot (functionalised, decomposed), joint, partition (forward and backward together), post_grad, fusion (operations to kernels)"),
    Column("nodes_before", pl.Int32, "operations"),
    Column("nodes_after", pl.Int32, "operations"),
    Column("patterns", pl.Int32, "patterns that were matched; null: not counted (torch logs none: the collector reads its counter), or a stage that has none"),
    Column("read_bytes_before", pl.Int64, "bytes a call read and written before it, by every operation as a kernel of its own; null: a size is not known"),
    Column("read_bytes_after", pl.Int64, "the same after it; after stage fusion: by the kernels as fused"),
    Column("removed", pl.List(pl.String), "operations that went away: op ×n"),
    Column("added", pl.List(pl.String), "operations that came: op ×n"),
)

GUARD_COSTS = table("guard_costs", "the guards of one compile, or one of them",
    *COMPILE,
    Column("co_name", pl.String, "code object"),
    Column("guard", pl.String, "as torch writes it where the row is about one alone, else which they are; null: the whole set, or a kind"),
    Column("kind", pl.String, "torch's guard type; null with source_name null: the compile's whole set"),
    Column("source_name", pl.String, "what they read: L['self'], L['x'], G['torch'], or ambient state (grad mode, default device, …)"),
    _FILE,
    _LINE,
    Column("guards", pl.Int32, "guards it covers"),
    Column("us", pl.Float64, "host time of one evaluation; null: not measured"),
    _HOW,
)

CALL_PATH = table("call_path", "one part of the way from the user's call to the generated code and back",
    Column("region_id", pl.Int32, "see regions; null: all regions"),
    Column("compile_id", pl.String, "of the entered graph; null: all"),
    Column("part", pl.String, "cache_lookup, pregraph_bytecode, runtime_wrappers, generated_wrapper, compiled_region, …"),
    Column("calls", pl.Float64, "per step"),
    Column("us_per_call", pl.Float64, "host, as profiled"),
    Column("ms", pl.Float64, "per step, as profiled, host"),
    Column("us_less_profiler", pl.Float64, "us_per_call less what the profiler's own events inside cost (step_counts.event_cost_us); null: not known"),
    Column("guards", pl.Int32, "guards on the code that was found, for cache_lookup"),
    Column("ns_per_guard", pl.Float64, "us_per_call over guards; holds the look-up's fixed cost and other entries' guards too"),
    Column("entries", pl.Int32, "compiled variants of the frame: a look-up tries them one after the other, the last one that fitted first"),
)

FIRST_CALLS = table("first_calls", "one part of the first call's latency",
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "see regions"),
    Column("part", pl.String, "dynamo, aot, inductor, scheduling, codegen, kernel_compile, autotune, cudagraph_recording, backward, first_run (running what was compiled, and Python between), unexplained"),
    Column("ms", pl.Float64, "host; the parts add up to the call"),
)

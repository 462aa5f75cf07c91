"""Tables read from what the compiler wrote: structured log, TORCH_LOGS text and stderr.

Names of CompilationMetrics fields and TORCH_LOGS artifacts are kept where they became columns.
"""

from __future__ import annotations

import polars as pl

from traceview.schema.columns import COMPILE, FAILED_GUARD, RECOMPILED, Column, table

_USER = (
    Column("user_file", pl.String, "file of the user's own stack frame nearest to the event"),
    Column("user_line", pl.Int32, "line there"),
    Column("user_function", pl.String, "function there"),
    Column("user_stack", pl.String, "whole user stack, outermost first: JSON list of {file, line, function, code}"),
)
_ORIGIN = Column("origin", pl.String, "structured, text or stderr: the log it is from")

COMPILES = table(
    "compiles",
    "one compile of one frame, its attempts joined (backward compiles: same id, is_forward false)",
    *COMPILE,
    Column("pid", pl.Int64, "process id"),
    Column("epoch", pl.Int32, "torch._dynamo.reset() calls seen before, per process"),
    Column("frame_id", pl.Int32, "torch's frame id"),
    Column("frame_compile_id", pl.Int32, "n-th compile of that frame"),
    Column("attempts", pl.Int32, "analysis attempts (restarts + 1)"),
    Column("is_forward", pl.Boolean, "false for a backward compiled later"),
    Column("co_name", pl.String, "name of the compiled code object"),
    Column("co_filename", pl.String, "its file"),
    Column("co_firstlineno", pl.Int32, "its first line"),
    Column("user_file", pl.String, "first frame of the user's own code on the stack"),
    Column("user_line", pl.Int32, "line there"),
    Column("user_function", pl.String, "function there"),
    Column("stack", pl.String, "stack at dynamo_start: JSON list of {file, line, function}"),
    Column("outcome", pl.String, "ok, empty (no operation captured), skipped (left in eager), limit (recompile limit), failed, unfinished"),
    Column("fail_type", pl.String, "CompilationMetrics.fail_type"),
    Column("fail_reason", pl.String, "CompilationMetrics.fail_reason"),
    Column("fail_user_file", pl.String, "fail_user_frame_filename"),
    Column("fail_user_line", pl.Int32, "fail_user_frame_lineno"),
    Column("restart_reasons", pl.List(pl.String), "why analysis was restarted"),
    Column("has_guarded_code", pl.Boolean, "false: Dynamo kept no code for the frame"),
    Column("started_us", pl.Float64, "Unix time, µs"),
    Column("duration_us", pl.Float64, "whole compile, host"),
    Column("logging_us", pl.Float64, "of it, writing the structured log; null where torch does not say"),
    Column("dynamo_us", pl.Float64, "dynamo_cumulative_compile_time_us; contains aot"),
    Column("aot_us", pl.Float64, "aot_autograd_cumulative_compile_time_us; contains inductor"),
    Column("inductor_us", pl.Float64, "inductor_cumulative_compile_time_us; contains codegen"),
    Column("codegen_us", pl.Float64, "inductor_code_gen_cumulative_compile_time_us"),
    Column("triton_compile_us", pl.Float64, "triton_compile_time_us"),
    Column("backward_us", pl.Float64, "backward_cumulative_compile_time_us"),
    Column("autotune_us", pl.Float64, "compile_time_autotune_time_us"),
    Column("graph_op_count", pl.Int32, "operations captured"),
    Column("graph_node_count", pl.Int32, "FX nodes"),
    Column("graph_input_count", pl.Int32, "graph inputs"),
    Column("guard_count", pl.Int32, "guards installed"),
    Column("shape_env_guard_count", pl.Int32, "of them on symbolic shapes"),
    Column("guard_latency_us", pl.Float64, "time of one evaluation, as torch measured it"),
    Column("cache_size", pl.Int32, "compiled variants of the frame before this one"),
    Column("recompile_reason", pl.String, "CompilationMetrics.recompile_reason"),
    Column("cudagraph_skip_reason", pl.String, "last reason, CompilationMetrics"),
    Column("dynamic_symbols", pl.Int32, "create_symbol records of the compile"),
    Column("metrics", pl.Boolean, "a compilation_metrics record was found"),
    raw=True,
)

COMPILE_PHASES = table(
    "compile_phases",
    "one timed phase of a compile (chromium_event B with its E)",
    *COMPILE,
    Column("pid", pl.Int64, "process id"),
    Column("phase_id", pl.Int64, "row number within the process, in order of start"),
    Column("parent_id", pl.Int64, "enclosing phase; null at the top"),
    Column("depth", pl.Int32, "0 at the top"),
    Column("name", pl.String, "torch's name: dynamo, entire_frame_compile, inductor_compile, …"),
    Column("started_us", pl.Float64, "Unix time, µs"),
    Column("duration_us", pl.Float64, "B to E; null if the E was lost"),
    Column("self_us", pl.Float64, "duration less the direct children's"),
    Column("aside", pl.Boolean, "ran in parallel with the compile's own thread (a worker): part of no other phase's time"),
    raw=True,
)

GUARDS = table(
    "guards",
    "one guard on a compile's code, from torch's own tree of them (dynamo_cpp_guards_str)",
    *COMPILE,
    Column("kind", pl.String, "torch's guard type: TENSOR_MATCH, TYPE_MATCH, ID_MATCH, DICT_CONTAINS, …"),
    Column("source_name", pl.String, "what it reads, the manager that it hangs on: L['x'], L['self']._modules; null: ambient state"),
    Column("guard", pl.String, "as torch writes it, without the source comment"),
    Column("file", pl.String, "file that its comment names (torch cuts long paths on the left)"),
    Column("line", pl.Int32, "line there"),
    raw=True,
)

GRAPH_BREAKS = table(
    "graph_breaks",
    "one occurrence of a graph break",
    *COMPILE,
    Column("attempt", pl.Int32, "attempt in which it was met"),
    Column("gb_id", pl.String, "torch's id (GB0124), from the message or matched on its type"),
    Column("gb_type", pl.String, "first line of the reason, torch's Gb_type"),
    Column("reason", pl.String, "the whole reason"),
    Column("explanation", pl.String, "torch's Explanation"),
    Column("hints", pl.List(pl.String), "torch's Hints"),
    Column("context", pl.String, "Developer debug context"),
    Column("frame_skipped", pl.Boolean, "the whole frame was left in eager because of it"),
    *_USER,
    _ORIGIN,
    raw=True,
)

RECOMPILES = table(
    "recompiles",
    "one guard that failed and so led to a recompile (newest cache entry first)",
    *COMPILE,
    *RECOMPILED,
    Column("order", pl.Int32, "0: newest cache entry, the guard that decided"),
    Column("failed_compile_id", pl.String, "the cache entry whose guard failed"),
    Column("guard", pl.String, "the guard as torch wrote it"),
    Column("kind", pl.String, "size, stride, dtype, rank, device, requires_grad, dispatch_keys, value, module_int, type_id, obj_id, length, keys, alias, global_state, shape_guard, backend, other"),
    *FAILED_GUARD,
    _ORIGIN,
    raw=True,
)

CACHE_EVENTS = table(
    "cache_events",
    "one look-up in one of torch's caches",
    *COMPILE,
    Column("cache", pl.String, "owner: fx_graph, aotautograd, dynamo, autotune, triton_bundle, pgo, …"),
    Column("event", pl.String, "hit, miss, bypass, disabled, guard_miss, saved, loaded, …"),
    Column("key", pl.String, "cache key; links CompiledFxGraph marks in profiler traces"),
    Column("time_saved_ms", pl.Float64, "as torch says on a hit"),
    Column("reason", pl.String, "bypass reason"),
    Column("is_forward", pl.Boolean, "null where the log does not say"),
    raw=True,
)

GRAPHS = table(
    "graphs",
    "one graph or generated source text of a compile",
    *COMPILE,
    Column("attempt", pl.Int32, "attempt"),
    Column("kind", pl.String, "dynamo_output, aot_joint, aot_forward, aot_backward, aot_inference, pre_grad, post_grad, before_*/after_* passes, output_code, fx_graph_runnable, compiled_autograd, ddp_split, …"),
    Column("aot_id", pl.String, "AOT ID in the generated code: 0_inference, 0_forward, 0_backward"),
    Column("graph_key", pl.String, "FX graph cache key where known"),
    Column("text", pl.String, "the text"),
    Column("node_count", pl.Int32, "operations in the text, for graphs"),
    Column("file", pl.String, "file that torch wrote it to, for output_code"),
    raw=True,
)

GENERATED_KERNELS = table(
    "generated_kernels",
    "one kernel that Inductor wrote or one library call in its generated code",
    *COMPILE,
    Column("aot_id", pl.String, "AOT ID of the generated code it is in"),
    Column("graph_key", pl.String, "FX graph cache key where known"),
    Column("kernel_name", pl.String, "triton_poi_fused_…, cpp_fused_…, extern_kernels.mm, torch.ops.aten.…"),
    Column("category", pl.String, "pointwise, reduction, persistent_reduction, foreach, template, split_scan, cpp, extern, fallback, user_triton"),
    Column("kernel_path", pl.String, "# kernel path, joins kernel_file in profiler traces"),
    Column("source_code", pl.String, "source of the kernel; null for extern and fallback"),
    Column("fused_ops", pl.List(pl.String), "aten operators, in topological order, duplicates kept out"),
    Column("source_nodes", pl.List(pl.String), "names of the traced nodes it came from"),
    Column("user_lines", pl.List(pl.String), "file:line of the user's source, nearest first"),
    Column("launch_sites", pl.Int32, "calls of it in the generated call()"),
    Column("line_origin", pl.String, "provenance, comment or null: where user_lines come from"),
    raw=True,
)

KERNEL_CALLS = table(
    "kernel_calls",
    "one call of a kernel or of a library in generated code",
    *COMPILE,
    Column("aot_id", pl.String, "AOT ID of the generated code it is in"),
    Column("graph_key", pl.String, "FX graph cache key where known"),
    Column("order", pl.Int32, "n-th call of the code, from 0"),
    Column("kernel_name", pl.String, "see generated_kernels"),
    Column("category", pl.String, "see generated_kernels"),
    Column("handle", pl.Int32, "torch's provenance handle of the call"),
    Column("source_nodes", pl.List(pl.String), "names of the traced nodes that it computes (of a backward: of its own nodes)"),
    Column("post_nodes", pl.List(pl.String), "names of the post-grad nodes that it computes, if provenance has them"),
    Column("ops", pl.List(pl.String), "aten operators"),
    Column("user_lines", pl.List(pl.String), "file:line of the user's own innermost stack frame, one for each stack"),
    Column("line_origin", pl.String, "provenance, comment or null: where user_lines come from"),
    raw=True,
)

FUSIONS = table(
    "fusions",
    "one node that Inductor's scheduler starts with, one of its decisions about a pair of them, or one round",
    *COMPILE,
    Column("graph_index", pl.Int32, "n-th graph of that compile id to be scheduled, from 0: forward and backward share the id"),
    Column("decision", pl.String, "candidate, fused, refused, benchmarked, round"),
    Column("node1", pl.String, "node (op3; op3_op4 once fused) or buffer set"),
    Column("node2", pl.String, "node or buffer set"),
    Column("kind", pl.String, "of a candidate: pointwise, reduction, extern, nop, foreach, other (template, scan, sort: torch prints no loops of theirs)"),
    Column("origins", pl.List(pl.String), "of a candidate: post-grad graph nodes that it computes; null where torch prints none"),
    Column("reason", pl.String, "why it was refused, torch's words"),
    Column("round", pl.Int32, "fusion round, from 1"),
    Column("nodes_before", pl.Int32, "of a round"),
    Column("nodes_after", pl.Int32, "of a round"),
    Column("speedup", pl.Float64, "of a benchmarked fusion; below 1 it was refused"),
    Column("times", pl.Int32, "how often the same decision is in the log (a pair repeats each round)"),
    raw=True,
)

SCHEDULES = table(
    "schedules",
    "one generated kernel as Inductor's scheduler put it together (TORCH_LOGS=schedule, GPU only)",
    *COMPILE,
    Column("nodes", pl.List(pl.String), "scheduler nodes in it, in order"),
    Column("text", pl.String, "torch's words"),
    raw=True,
)

PERF_HINTS = table(
    "perf_hints",
    "one performance hint of Inductor's",
    *COMPILE,
    Column("kind", pl.String, "fallback_kernel, padding, non_contiguous_reduction, tiling, grad_copy, other"),
    Column("message", pl.String, "torch's words"),
    Column("times", pl.Int32, "how often"),
    raw=True,
)

INDUCTOR_METRICS = table(
    "inductor_metrics",
    "what Inductor's scheduler estimates that one graph's kernels move (TORCH_LOGS=inductor_metrics)",
    *COMPILE,
    Column("num_bytes_accessed", pl.Int64, "bytes of all kernels, one call of the graph"),
    Column("nodes", pl.List(pl.String), "scheduler nodes, one a kernel on a GPU, in order of running"),
    Column("node_kinds", pl.List(pl.String), "SchedulerNode, FusedSchedulerNode, ExternKernelSchedulerNode, …"),
    Column("node_bytes", pl.List(pl.Int64), "bytes of each node, down to a multiple of 4"),
    raw=True,
)

CUDAGRAPH_EVENTS = table(
    "cudagraph_events",
    "one event of cudagraph capture or replay",
    *COMPILE,
    Column("event", pl.String, "skip, tree (a graph is handed to cudagraphs), warmup, record (a capture), rerecord, checkpoint, partition, dynamic_shapes, rerecord_limit, overwritten, other"),
    Column("reason", pl.String, "torch's reason or message"),
    Column("function_id", pl.Int32, "cudagraph function"),
    Column("count", pl.Int32, "instances or sizes that the message names"),
    *_USER,
    _ORIGIN,
    raw=True,
)

AUTOTUNE_CHOICES = table(
    "autotune_choices",
    "one candidate of one autotuning table",
    *COMPILE,
    Column("table_index", pl.Int32, "n-th table of the process"),
    Column("op", pl.String, "mm, addmm, conv, …"),
    Column("shapes", pl.String, "as written: 2048x4096, 4096x1024"),
    Column("dtypes", pl.String, "as written"),
    Column("strides", pl.String, "as written"),
    Column("choice", pl.String, "candidate"),
    Column("backend", pl.String, "aten, triton, cpp, other"),
    Column("time_ms", pl.Float64, "benchmarked time"),
    Column("is_best", pl.Boolean, "the winner"),
    Column("details", pl.String, "block sizes and the like, as written"),
    Column("benchmark_s", pl.Float64, "seconds that the table took to benchmark"),
    Column("precompile_s", pl.Float64, "seconds that it took to compile the candidates"),
    raw=True,
)

WARNINGS = table(
    "warnings",
    "one warning of torch's or of Python's that reached stderr",
    *COMPILE,
    Column("kind", pl.String, "recompile_limit, suppressed_failure, tf32, complex_fallback, item_break, cudagraph_skip, few_sms, python_warning, other"),
    Column("category", pl.String, "Python warning class, class of a suppressed exception, or log level"),
    Column("message", pl.String, "the text"),
    Column("file", pl.String, "file that it names"),
    Column("line", pl.Int32, "line there"),
    Column("function", pl.String, "function that it names"),
    raw=True,
)

SYMBOLS = table(
    "symbols",
    "one symbolic size created, or one specialised to a value",
    *COMPILE,
    Column("event", pl.String, "create, unbacked, specialize, guard"),
    Column("symbol", pl.String, "s77"),
    Column("source_name", pl.String, "L['x'].size()[0]"),
    Column("value", pl.String, "hint or specialised value"),
    Column("expr", pl.String, "guard expression or value range"),
    *_USER,
    raw=True,
)

LOG_RECORDS = table(
    "log_records",
    "one kind of record in one structured log, counted",
    Column("pid", pl.Int64, "process id"),
    Column("key", pl.String, "envelope key: artifact, chromium_event, compilation_metrics, …"),
    Column("name", pl.String, "artifact name; null otherwise"),
    Column("known", pl.Boolean, "a parser reads this kind; unknown ones are kept as counts"),
    Column("records", pl.Int64, "how many"),
    Column("payload_bytes", pl.Int64, "bytes of their payloads"),
    Column("raw_file", pl.String, "the log, relative to the run folder"),
)

UNREADABLE = table(
    "unreadable",
    "one kind of damage in one file, counted",
    Column("file", pl.String, "raw file relative to the run folder"),
    Column("kind", pl.String, "truncated, foreign_line, bad_json, bad_digest, bad_encoding, bad_event, not_gzip, unknown_format, …"),
    Column("times", pl.Int64, "how often"),
    Column("first_line", pl.Int64, "1-based line of the first (byte offset for a trace without lines)"),
    Column("example", pl.String, "its first 200 characters"),
)

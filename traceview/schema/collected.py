"""Tables of what our own collector saw while the script ran (``raw/events-*.jsonl``)."""

from __future__ import annotations

import polars as pl

from traceview.schema.columns import Column, table

_STANCE = Column("stance", pl.String, "compiled (the script's own stance) or eager (forced)")
_PHASE = Column("phase", pl.String, "cold, warmup, block, profile, tail (after the plan)")

RUNS = table(
    "runs",
    "one process of one pass over the script",
    Column("pid", pl.Int64, "process id"),
    Column("started_us", pl.Float64, "Unix time of the start, µs"),
    Column("wall_s", pl.Float64, "host seconds from the process's start to its end"),
    Column("exit_kind", pl.String, "exit, signal, timeout, stopped (by our plan), killed, unknown"),
    Column("exit_code", pl.Int32, "exit status; null when ended by a signal"),
    Column("exit_signal", pl.Int32, "signal number; null otherwise"),
    Column("error_type", pl.String, "class of the exception that ended the script"),
    Column("error_message", pl.String, "its message, at most 4 kB"),
    Column("error_file", pl.String, "file of the last stack frame in the user's own code"),
    Column("error_line", pl.Int32, "line there"),
    Column("error_function", pl.String, "function there"),
    Column("error_stance", pl.String, "stance in force when it was raised"),
    Column("torch_version", pl.String, "torch.__version__"),
    Column("triton_version", pl.String, "triton's version, null if not importable"),
    Column("cuda_version", pl.String, "torch.version.cuda"),
    Column("driver_version", pl.String, "the GPU driver's version"),
    Column("python_version", pl.String, "of the target's interpreter"),
    Column("device_name", pl.String, "name of the device that the steps ran on; cpu otherwise"),
    Column("device_count", pl.Int32, "devices that torch sees"),
    Column("device_capability", pl.String, "CUDA compute capability, as 9.0"),
    Column("platform", pl.String, "operating system and processor"),
    Column("cpu_threads", pl.Int32, "torch.get_num_threads()"),
    Column("cpu_count", pl.Int32, "processors that the process may use: its affinity, less if a cgroup's quota is lower"),
    Column("step_kind", pl.String, "what began a step: optimizer or call; null if no step was seen"),
    Column("steps_seen", pl.Int64, "steps seen in all"),
    Column("quiet_after_step", pl.Int64, "first step after which no compile ran; null if never"),
    Column("never_quiet", pl.Boolean, "compiles went on until the plan gave up waiting"),
    Column("plan_complete", pl.Boolean, "all blocks and profiler windows were done"),
    Column("user_stance", pl.String, "the stance that the script itself set (torch.compiler.set_stance)"),
    Column("dynamo_disabled", pl.Boolean, "TORCH_COMPILE_DISABLE or config.disable was in force"),
    Column("grad_enabled_steps", pl.Boolean, "grad mode at step edges; null if no step was seen"),
    Column("argv", pl.String, "the script's argv as a JSON list"),
    Column("cwd", pl.String, "working directory at the start"),
)

ENVIRONMENT = table(
    "environment",
    "one setting in force in one process",
    Column("section", pl.String, "env, dynamo_config, inductor_config, functorch_config, compiler_config, precision, torch"),
    Column("name", pl.String, "variable or config name"),
    Column("value", pl.String, "its value as text"),
    Column("default", pl.String, "torch's default as text, null where there is none"),
    Column("set_by", pl.String, "user or traceview"),
)

REGIONS = table(
    "regions",
    "one torch.compile call and the callable it gave back",
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "numbered from 0 in order of creation, per process"),
    Column("kind", pl.String, "function, module, class, method, module_compile (nn.Module.compile), other"),
    Column("name", pl.String, "qualified name of the compiled function or module class"),
    Column("target_file", pl.String, "file of the compiled code"),
    Column("target_line", pl.Int32, "its first line"),
    Column("target_last_line", pl.Int32, "the last line that has code of it"),
    Column("call_file", pl.String, "file of the torch.compile call (user's own)"),
    Column("call_line", pl.Int32, "line of that call"),
    Column("call_function", pl.String, "function that made the call"),
    Column("backend", pl.String, "backend by name; repr of a callable"),
    Column("backend_is_callable", pl.Boolean, "a custom backend was passed"),
    Column("mode", pl.String, "mode=, null if not passed"),
    Column("dynamic", pl.String, "dynamic= as text: None, True, False"),
    Column("fullgraph", pl.Boolean, "fullgraph="),
    Column("disable", pl.Boolean, "disable="),
    Column("options", pl.String, "options= as JSON text, null if not passed"),
    Column("calls", pl.Int64, "calls seen in all"),
    Column("outermost_calls", pl.Int64, "of them not inside another region"),
    Column("first_call_ms", pl.Float64, "host time of the first call, compile included"),
    Column("first_call_stack", pl.String, "user's stack at the first call, outermost first: JSON list of {file, line, function}"),
    Column("collected_uncalled", pl.Boolean, "what torch.compile gave back died without a call"),
    Column("methods_used", pl.List(pl.String), "other methods fetched through the compiled module"),
    Column("error", pl.String, "torch.compile itself raised: class and message"),
    Column("backends_offered", pl.List(pl.String), "where it raised: the backends that this torch knows by name; null otherwise"),
    Column("is_anchor", pl.Boolean, "its calls are the steps that were timed"),
    Column("compile_calls", pl.Int32, "torch.compile calls it covers: above 1 if one line compiles one function again and again"),
)

INPUT_SIZES = table(
    "input_sizes",
    "one combination of sizes that the tensors had which a region was called with",
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "see regions"),
    Column("sizes", pl.String, "of its tensors in the order of the arguments: 32x64, 32; others: too many to tell apart"),
    Column("calls", pl.Int64, "watched calls with them: outermost ones outside of the timed blocks"),
)

BLOCKS = table(
    "blocks",
    "one timed block of steps in one stance",
    Column("pid", pl.Int64, "process id"),
    Column("block_index", pl.Int32, "in order of running, from 0"),
    Column("pair_index", pl.Int32, "block pairs (eager with compiled), from 0; null: a block next to a profiler window, which shows how fast the machine was then"),
    _STANCE,
    Column("anchor_region_id", pl.Int32, "region whose calls count steps; null for optimizer steps"),
    Column("first_step", pl.Int64, "index of the first timed step"),
    Column("steps", pl.Int32, "timed steps"),
    Column("skipped_steps", pl.Int32, "steps after the switch that were left out"),
    Column("clock", pl.String, "device (CUDA events at the edges) or host"),
    Column("duration_ms", pl.Float64, "time between the edges by that clock"),
    Column("host_ms", pl.Float64, "host time between the edges"),
    Column("thread_ms", pl.Float64, "of it the thread of the steps was on a processor"),
    Column("queued_ms", pl.Float64, "of it that thread was ready to run and had no processor; null where Linux does not tell"),
    Column("region_calls", pl.Int64, "calls of all regions in the block"),
    Column("compiles_inside", pl.Int32, "compiles that ended inside the block"),
    Column("page_faults", pl.Int64, "pages that the process touched for the first time (minor faults)"),
    Column("started_us", pl.Float64, "Unix time of the first edge, µs"),
)

STEPS = table(
    "steps",
    "one step outside the timed blocks",
    Column("pid", pl.Int64, "process id"),
    Column("step", pl.Int64, "step index, from 0"),
    _PHASE,
    _STANCE,
    Column("started_us", pl.Float64, "Unix time of the step's edge, µs"),
    Column("host_ms", pl.Float64, "host time to the next edge (not synchronised on a GPU)"),
    Column("compiles_inside", pl.Int32, "compiles that ended inside"),
)

CALLS = table(
    "calls",
    "one call of a compiled callable, outside the timed blocks",
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "see regions"),
    Column("call_index", pl.Int64, "n-th call of that region, from 0"),
    _PHASE,
    _STANCE,
    Column("step", pl.Int64, "step in which it fell"),
    Column("started_us", pl.Float64, "Unix time, µs"),
    Column("host_ms", pl.Float64, "host time of the call (launching only, on a GPU)"),
    Column("compiles_inside", pl.Int32, "compiles that ended inside the call"),
    Column("outermost", pl.Boolean, "not inside another region's call"),
)

COMPILE_INTERVALS = table(
    "compile_intervals",
    "one span in which torch was compiling (dynamo callbacks)",
    Column("pid", pl.Int64, "process id"),
    Column("trigger", pl.String, "dynamo, lazy_backward, cudagraph_recording, …; null on old torch"),
    Column("compile_id", pl.String, "as torch gives it; null on old torch"),
    Column("started_us", pl.Float64, "Unix time, µs"),
    Column("duration_ms", pl.Float64, "host time"),
    Column("cpu_ms", pl.Float64, "CPU time of the process and its ended children (C++ compilers) meanwhile; null where not recorded"),
    Column("step", pl.Int64, "step in which it fell"),
)

PATTERN_COUNTS = table(
    "pattern_counts",
    "one pass of Inductor's over one graph: patterns that it matched, by torch's counter",
    Column("pid", pl.Int64, "process id"),
    Column("stage", pl.String, "pre_grad, joint or post_grad"),
    Column("compile_id", pl.String, "as torch gives it"),
    Column("patterns", pl.Int32, "matched in the graph and the graphs inside it"),
)

GUARD_TIMINGS = table(
    "guard_timings",
    "a compile's guards, all or those of one branch of torch's tree: what evaluating them takes",
    Column("pid", pl.Int64, "process id"),
    Column("compile_id", pl.String, "as torch gives it"),
    Column("source_name", pl.String, "what all of them start from: L['self']._modules['layers']; null: the whole set"),
    Column("guards", pl.Int32, "guards of the branch that are in no other row but the whole set's"),
    Column("us", pl.Float64, "host time of one evaluation, every guard looked at; of a branch: what a set costs more with it"),
    Column("evaluations", pl.Int32, "of how many it is the median"),
)

RESETS = table(
    "resets",
    "one torch.compiler.reset() of the script's (at most 1000 a process)",
    Column("pid", pl.Int64, "process id"),
    Column("file", pl.String, "file of the call (user's own)"),
    Column("line", pl.Int32, "line of that call"),
    Column("function", pl.String, "function that made the call"),
    Column("started_us", pl.Float64, "Unix time, µs"),
    Column("step", pl.Int64, "step in which it fell"),
)

MEMORY = table(
    "memory",
    "a memory peak in one stance",
    Column("pid", pl.Int64, "process id"),
    _STANCE,
    Column("device", pl.String, "cuda:0, cpu"),
    Column("source", pl.String, "allocator (CUDA caching allocator), process (resident set), profiler"),
    Column("block_index", pl.Int32, "timed block, null for a profiler window"),
    Column("peak_bytes", pl.Int64, "peak allocated bytes"),
    Column("peak_reserved_bytes", pl.Int64, "peak reserved bytes (allocator only)"),
    Column("start_bytes", pl.Int64, "allocated bytes at the beginning"),
)

PROFILE_WINDOWS = table(
    "profile_windows",
    "one profiler window",
    Column("pid", pl.Int64, "process id"),
    _STANCE,
    Column("steps", pl.Int32, "whole steps inside"),
    Column("started_us", pl.Float64, "Unix time, µs"),
    Column("host_ms", pl.Float64, "host time of the window, synchronised at both ends"),
    Column("error", pl.String, "why there is no trace, null if there is one"),
    Column("file", pl.String, "trace file relative to the run folder"),
    Column("page_faults", pl.Int64, "minor faults in the window, the profiler's own among them"),
    Column("purpose", pl.String, "time (several steps, as they are), lines (one step, the user's lines marked)"),
)

CEILINGS = table(
    "ceilings",
    "what one device of this run can do, measured after the last step",
    Column("pid", pl.Int64, "process id"),
    Column("device", pl.String, "cuda:0, cpu"),
    Column("kind", pl.String, "copy, l2_copy, matmul, launch, kernel_gap, page_fault (of the host)"),
    Column("dtype", pl.String, "of a matmul: float32, bfloat16, float16; null otherwise"),
    Column("value", pl.Float64, "median, in unit"),
    Column("unit", pl.String, "GB/s (bytes read and written), TFLOP/s, us"),
    Column("size", pl.String, "what was moved or multiplied: 1 GiB, 8192x8192x8192"),
    Column("detail", pl.String, "what decides it: tf32 on, threads"),
    Column("runs", pl.Int32, "timed repetitions"),
    Column("clock", pl.String, "device or host"),
)

OUTPUT_TRIALS = table(
    "output_trials",
    "one compiled callable of which a call was run again at the end, eager and compiled, or why not",
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "the callable, as in regions"),
    Column("compared", pl.Boolean, "whether its outputs were compared"),
    Column("why", pl.String, "why they were not, null if they were"),
    Column("reference", pl.String, "float64: there is a run in it that errors are against; null: there is none"),
    Column("reference_why", pl.String, "why there is none"),
    Column("draws_random", pl.Boolean, "the call drew random numbers in eager"),
    Column("seconds", pl.Float64, "host time of all runs"),
)

OUTPUT_CHECKS = table(
    "output_checks",
    "one output of one such run compared with eager's",
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "the callable, as in regions"),
    Column("run", pl.String, "eager_again, compiled, fallback_random (with eager's random numbers), ladder (those, and eager's roundings, up to one stage of the compiler)"),
    Column("backend", pl.String, "of torch.compile in that run; null in eager"),
    Column("output", pl.String, "output[0].logits, argument 1 (written), buffer mean (written); null: that run failed"),
    Column("shape", pl.List(pl.Int64), "of a tensor"),
    Column("dtype", pl.String, "of a tensor, without torch."),
    Column("elements", pl.Int64, "of a tensor"),
    Column("max_abs_diff", pl.Float64, "largest difference from eager, of elements that are finite everywhere"),
    Column("rms_diff", pl.Float64, "root mean square of the difference from eager"),
    Column("scale", pl.Float64, "root mean square of the reference, of eager where there is none"),
    Column("rmse", pl.Float64, "root mean square error against float64"),
    Column("eager_rmse", pl.Float64, "the same of eager"),
    Column("cosine", pl.Float64, "cosine similarity with eager"),
    Column("differing", pl.Int64, "elements that are NaN or infinite on one side only, besides eager's own; of whole numbers: that differ"),
    Column("limit", pl.Float64, "rmse (without float64: rms_diff) up to which the two count as the same"),
    Column("same", pl.Boolean, "within the limits; null: that run failed"),
    Column("why", pl.String, "what differs where there are no numbers, or why the run failed"),
)

SOURCES = table(
    "sources",
    "one file of the user's that the run kept a copy of",
    Column("file", pl.String, "path as Python and torch name it"),
    Column("copy", pl.String, "the copy, relative to the run folder"),
    Column("sha256", pl.String, "of its bytes"),
)

NOTES = table(
    "notes",
    "something that the collector could not do",
    Column("pid", pl.Int64, "process id"),
    Column("what", pl.String, "what was to be done"),
    Column("why", pl.String, "why it was not"),
)

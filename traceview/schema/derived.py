"""Tables that ``traceview.derive`` computes from the others: joins, attribution, accounting.

``clock`` says by which clock a millisecond was measured: ``device`` (CUDA events, or device time
in a profile) or ``host``.
"""

from __future__ import annotations

import polars as pl

from traceview.schema.columns import CODE, COMPILE, PHASES, Column, table

_STANCE = Column("stance", pl.String, "compiled or eager")

BLOCK_PAIRS = table("block_pairs", "one eager block with the compiled block next to it",
    Column("pid", pl.Int64, "process id"),
    Column("anchor_region_id", pl.Int32, "region whose calls count steps; null for optimizer steps"),
    Column("pair_index", pl.Int32, "in order of running"),
    Column("eager_ms", pl.Float64, "per step"),
    Column("compiled_ms", pl.Float64, "per step"),
    Column("speedup", pl.Float64, "eager_ms / compiled_ms"),
    Column("steps", pl.Int32, "timed steps per block (the smaller of the two)"),
    Column("weight", pl.Float64, "how much it counts: harmonic mean of both blocks' steps, at most half that of the longest pair; null: it does not"),
    Column("replayed", pl.Boolean, "calls repeated after the script's end; null: older recordings, which have none"),
    Column("clock", pl.String, "device or host"),
    Column("used", pl.Boolean, "part of the figure"),
    Column("headline", pl.Boolean, "of the steps that the verdict is about; others have figures of their own in callable_speedups"),
    Column("compiles_inside", pl.Int32, "compiles that ended inside one of the two blocks"),
    Column("left_out", pl.String, "why not: compile inside, other work between the edges, warming up, replayed calls that are not whole steps"),
)

SPEEDUPS = table("speedups", "the measured speedup of a step, per rank (rank of the verdict: the first)",
    Column("pid", pl.Int64, "process id"),
    Column("basis", pl.String, "paired_blocks, two_runs (a second, all-eager run), none"),
    Column("clock", pl.String, "device or host"),
    Column("eager_ms", pl.Float64, "median per step"),
    Column("compiled_ms", pl.Float64, "median per step"),
    Column("speedup", pl.Float64, "median over pairs of eager / compiled"),
    Column("speedup_low", pl.Float64, "lower end of the 95 % bootstrap interval over pairs"),
    Column("speedup_high", pl.Float64, "upper end"),
    Column("pairs_used", pl.Int32, "block pairs behind the figure"),
    Column("pairs_measured", pl.Int32, "block pairs measured"),
    Column("pairs_replayed", pl.Int32, "of those behind the figure: calls repeated on copies of their inputs after the script's end"),
    Column("steps_timed", pl.Int64, "steps inside those blocks, both stances"),
    Column("compiles_inside", pl.Int64, "compiles inside the blocks behind the figure: 0 unless it never went quiet"),
    Column("outcome", pl.String, "helped, neutral, hurt, failed, not_compiled, not_measured"),
    Column("compile_s", pl.Float64, "cold compile, host seconds in which anything compiled (union)"),
    Column("break_even_steps", pl.Int64, "compile_s over seconds saved per step; null: never or unknown"),
    Column("job_steps", pl.Int64, "length of the real job in steps, if known"),
    Column("job_steps_from", pl.String, "option (--job-steps) or observed (ended by itself after > 60 s, compiling not counted)"),
    Column("first_call_ms", pl.Float64, "host time of the first compiled call"),
    Column("reason", pl.String, "why the outcome is failed, not_compiled or not_measured, or hurt though nothing was compiled; null otherwise"),
)

CALLABLE_SPEEDUPS = table("callable_speedups", "one torch.compile call, or the optimizer's steps: its own measured speedup",
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "see regions; null: steps of an optimizer"),
    Column("name", pl.String, "see regions"),
    Column("headline", pl.Boolean, "the verdict, and what is recorded of blocks and windows, is about its steps: of those measured the one with most script_ms, a backend that generates no code last"),
    Column("timed", pl.Boolean, "blocks of its own steps were timed"),
    Column("outcome", pl.String, "helped, neutral, hurt, not_measured"),
    Column("reason", pl.String, "why it was not measured; null otherwise"),
    Column("part_of_step", pl.Boolean, "it was called in the steps of another one, and not timed by itself"),
    Column("within_region_id", pl.Int32, "then: whose steps; null: an optimizer's"),
    Column("script_ms", pl.Float64, "its steps times compiled_ms: what they take of the script's time, all compiled"),
    Column("windows", pl.Int32, "profiler windows recorded of its steps"),
    Column("basis", pl.String, "as in speedups, and so are the other figures"),
    Column("clock", pl.String, "device or host"),
    Column("eager_ms", pl.Float64, "median per step"),
    Column("compiled_ms", pl.Float64, "median per step"),
    Column("speedup", pl.Float64, "median over pairs of eager / compiled"),
    Column("speedup_low", pl.Float64, "lower end of the 95 % bootstrap interval over pairs"),
    Column("speedup_high", pl.Float64, "upper end"),
    Column("pairs_used", pl.Int32, "block pairs behind the figure"),
    Column("pairs_measured", pl.Int32, "block pairs measured"),
    Column("pairs_replayed", pl.Int32, "as in speedups"),
    Column("steps_timed", pl.Int64, "steps inside those blocks, both stances"),
    Column("compiles_inside", pl.Int64, "compiles inside the blocks behind the figure"),
)

ACCOUNTING = table("accounting", "time per step of one category, from the profiler window",
    _STANCE,
    Column("category", pl.String, "as in kernels; idle_launch_bound, _sync, _data_loading, _guards, _call_overhead, _graph_break, _compile, _allocator, _copy_wait, _gc, _custom_op, _communication, _python, _device, _inside_graph, _unlinked; on a CPU data_loading, graph_break, compile, gc, optimizer_python, python, overhead_*; machine_speed (the timed step less that of the blocks next to the window); unexplained"),
    Column("kind", pl.String, "busy, idle, overhead, other, machine_speed, unexplained"),
    Column("ms", pl.Float64, "of a step as timed without a profiler; with the row unexplained (negative: more was found than the step is long) they add up to it"),
    Column("profiled_ms", pl.Float64, "per step, as profiled, overlaps counted once"),
    Column("count", pl.Float64, "executions per step"),
    Column("clock", pl.String, "device or host"),
)

STEP_COUNTS = table("step_counts", "what one step of a stance does, from the profiler window",
    _STANCE,
    Column("steps", pl.Int32, "steps of the window that count: less the first fifth, in which the profiler settles, and on a CPU less those held up"),
    Column("step_ms", pl.Float64, "per step as profiled, less the collector's own work"),
    Column("device_busy_ms", pl.Float64, "per step, union of device intervals; null without a GPU"),
    Column("device_idle_ms", pl.Float64, "per step, step less busy; null without a GPU"),
    Column("kernels", pl.Float64, "device executions (on a CPU: operators that do work) per step"),
    Column("launches", pl.Float64, "launch calls per step; null without a GPU"),
    Column("graph_launches", pl.Float64, "cudaGraphLaunch per step; null without a GPU"),
    Column("syncs", pl.Float64, "synchronising calls per step; null without a GPU"),
    Column("compiled_regions", pl.Float64, "Torch-Compiled Region marks per step"),
    Column("cache_lookup_ms", pl.Float64, "TorchDynamo Cache Lookup per step, host"),
    Column("call_overhead_ms", pl.Float64, "look-up, pre-graph bytecode and runtime wrappers per step, host"),
    Column("gap_ms", pl.Float64, "host time per step between compiled regions inside one region call"),
    Column("gaps", pl.Float64, "such gaps per step"),
    Column("timed_step_ms", pl.Float64, "per step without a profiler, median of blocks"),
    Column("beside_step_ms", pl.Float64, "per step in the unprofiled blocks right before and after this window, mean; null where none was run"),
    Column("events", pl.Float64, "host events that the profiler wrote per step, on the thread that runs the steps"),
    Column("event_cost_us", pl.Float64, "what one of them cost the host: the least with which the window takes a step that lies between those of the blocks next to it and the timed one; null: this window does not tell"),
    Column("unexplained_ms", pl.Float64, "timed step less all categories"),
    Column("page_faults", pl.Float64, "minor faults per step in the timed blocks, median; null where not recorded"),
    Column("profiled_page_faults", pl.Float64, "minor faults per step in the window"),
    Column("profiler_faults_ms", pl.Float64, "time of the page faults beyond those of the timed blocks, taken off the operators in ms of accounting; null: none"),
    Column("exposed_communication_ms", pl.Float64, "communication while nothing else ran on the device; null without any"),
    Column("hidden_communication_ms", pl.Float64, "communication behind other kernels; null without any"),
)

REGION_COSTS = table("region_costs", "one region's part of a step",
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "see regions"),
    Column("name", pl.String, "see regions"),
    Column("calls", pl.Int64, "calls seen in all"),
    Column("calls_per_step", pl.Float64, "in the profiler window (compiled)"),
    Column("eager_ms", pl.Float64, "host time per step in the profiler window"),
    Column("compiled_ms", pl.Float64, "host time per step in the profiler window"),
    Column("share", pl.Float64, "of the step's host time (compiled), 0 to 1"),
    Column("compile_s", pl.Float64, "seconds of compiles that belong to it"),
    Column("compiles", pl.Int32, "compiles that belong to it"),
)

COMPILE_COSTS = table("compile_costs", "compile seconds of one frame, phases exclusive (they add up)",
    *CODE,
    Column("user_file", pl.String, "user's own location"),
    Column("user_line", pl.Int32, "line there"),
    Column("compiles", pl.Int32, "compiles of the frame"),
    Column("total_s", pl.Float64, "all of it"),
    *PHASES,
    Column("first_started_us", pl.Float64, "Unix time of its first compile, µs"),
)

KERNEL_GROUPS = table("kernel_groups", "all executions of one kernel (on a CPU: operator) in one stance",
    _STANCE,
    Column("name", pl.String, "kernel or operator"),
    Column("category", pl.String, "as in kernels"),
    Column("count", pl.Float64, "executions per step"),
    Column("ms", pl.Float64, "per step, as profiled"),
    Column("total_count", pl.Int64, "executions in all marked steps; in the whole window where no step is marked"),
    Column("total_ms", pl.Float64, "of these, as profiled"),
    Column("share", pl.Float64, "of the busy time of that stance, 0 to 1"),
    Column("clock", pl.String, "device or host"),
    Column("cpu_op", pl.String, "operator that launched it most often"),
    Column("compile_id", pl.String, "for generated kernels"),
    Column("fused_ops", pl.List(pl.String), "aten operators in it, for generated kernels"),
    Column("user_lines", pl.List(pl.String), "file:line, for generated kernels"),
)

SCRIPT_TIMERS = table("script_timers", "one clock of the script's own that runs around calls of a region, read from its source",
    Column("region_id", pl.Int32, "see regions"),
    Column("file", pl.String, "user's file"),
    Column("start_line", pl.Int32, "where the clock is read first"),
    Column("read_line", pl.Int32, "where it is read again, after the call"),
    Column("call_line", pl.Int32, "line between them that led to the first call, or calls it later"),
    Column("function", pl.String, "function that holds all three, or <module>"),
    Column("clock", pl.String, "time.perf_counter, torch.cuda.Event, timeit.timeit, …"),
    Column("calls_in_loop", pl.Boolean, "several calls lie between the two readings (a loop is between)"),
    Column("spans_first_call", pl.Boolean, "the figure holds the first call, compile included"),
    Column("read_in_loop", pl.Boolean, "read in the loop that makes the calls: a rate as it goes"),
    Column("shown_whole", pl.Boolean, "the script only prints the time"),
    Column("waits", pl.Boolean, "false: certainly nothing between the readings waits for a device; null: not known"),
    Column("calls", pl.Int64, "calls between the readings, if the source shows it; null: not known"),
)

SETTING_SITES = table("setting_sites", "one line of the user's own that names a setting of torch's, in the source's order",
    Column("name", pl.String, "as in environment; of dispatch_modes: the class, where `with` enters it"),
    Column("file", pl.String, "user's file"),
    Column("line", pl.Int32, "line there"),
    Column("function", pl.String, "function around it, or <module>"),
)

SOURCE_LINES = table("source_lines", "the user's own text at one line that calls torch.compile, that led to a compiled call, or that the exception passed which ended the script",
    Column("file", pl.String, "user's file"),
    Column("line", pl.Int32, "line there"),
    Column("text", pl.String, "that line of the run's copy"),
    Column("loops", pl.Int32, "loops and comprehensions of its function that run it again and again; null: not known"),
)

LINES_TO_ADD = table("lines_to_add", "the line that compiles what --compile named, and where it goes in the user's source",
    Column("region_id", pl.Int32, "see regions"),
    Column("file", pl.String, "user's file"),
    Column("line", pl.Int32, "line there: the last one of the statement that makes the module, the first one of the function"),
    Column("text", pl.String, "that line of the run's copy"),
    Column("before", pl.Boolean, "the new line goes before it (a decorator); else after it"),
    Column("added", pl.String, "the new line"),
)

BACKWARD_CALLS = table("backward_calls", "one place in the user's sources that asks for gradients or names torch.optim, whether it ran or not",
    Column("file", pl.String, "user's file"),
    Column("line", pl.Int32, "line there"),
    Column("call", pl.String, "what is called there: backward, grad, fit, torch.optim, …"),
)

CACHED_CALLS = table("cached_calls", "one call that Dynamo warned about: the function has functools.lru_cache or cache, and Dynamo traces it in every graph",
    Column("file", pl.String, "user's file with the call"),
    Column("line", pl.Int32, "line there"),
    Column("function", pl.String, "the function with the cache; null: not found in the user's sources"),
    Column("in_file", pl.String, "file with the function"),
    Column("first_line", pl.Int32, "first line of the function"),
    Column("last_line", pl.Int32, "last line of the function"),
    raw=True,
)

AHEAD_COMPILES = table("ahead_compiles", "one compile ahead of time: by AOTInductor, or an export; no call of torch.compile's",
    Column("pid", pl.Int64, "process id"),
    Column("kind", pl.String, "aot_inductor, export"),
    Column("started_us", pl.Float64, "Unix time, µs; null: an export that the log only names"),
    Column("seconds", pl.Float64, "host time; null where it is not in the log"),
    Column("phases", pl.Int32, "timed phases, itself included"),
    Column("graphs", pl.Int32, "graphs that AOTAutograd made"),
    raw=True,
)

DDP_BUCKETS = table("ddp_buckets", "one piece that DDPOptimizer cut a graph into, for one bucket of DistributedDataParallel",
    *COMPILE,
    Column("attempt", pl.Int32, "attempt in which it was cut"),
    Column("bucket", pl.Int32, "from 0, in the order of the forward; gradients are reduced from the last on"),
    Column("op_count", pl.Int32, "operations in it"),
    Column("parameters", pl.Int32, "parameters that it takes, as their names tell"),
    Column("parameter_bytes", pl.Int64, "their bytes; null where a size is not known"),
    raw=True,
)

RANK_WAITS = table("rank_waits", "one compile during which another rank waited, and did not compile itself",
    *COMPILE,
    Column("is_forward", pl.Boolean, "false for a backward compiled later"),
    Column("step", pl.Int64, "step that the compiling rank was in"),
    Column("waiting_rank", pl.Int32, "the rank that waited; the one that lost most if several did"),
    Column("started_us", pl.Float64, "Unix time at which the compile began, µs"),
    Column("compile_ms", pl.Float64, "host time of the compile, less what the waiting rank compiled meanwhile"),
    Column("wait_ms", pl.Float64, "of it that rank waited: its step took that much longer than usual"),
    Column("found_in_cache", pl.Boolean, "that rank found the same graph in a cache; false: it compiled other code in that step, or none"),
)

HOST_READS = table("host_reads", "one line of the user's own that copies from a GPU to the host outside of compiled code, and nothing the other way",
    _STANCE,
    Column("file", pl.String, "user's file"),
    Column("line", pl.Int32, "line there"),
    Column("asks", pl.String, "what asks for the value in the source: .item(), float(), if, …; null: nothing that can be seen"),
    Column("scalars", pl.Float64, "single values a step"),
    Column("tensors", pl.Float64, "copies of tensors a step"),
    Column("waited_ms", pl.Float64, "host time a step in calls that wait, as profiled"),
)

READ_REPLAYS = table("read_replays", "a step without a profiler, played again without the values that one place reads from the GPU",
    _STANCE,
    Column("file", pl.String, "user's file"),
    Column("line", pl.Int32, "the place's first line, as in host_reads"),
    Column("last_line", pl.Int32, "its last line"),
    Column("step_ms", pl.Float64, "the step as played with all it does, device clock"),
    Column("without_ms", pl.Float64, "the same without the place's reads"),
)

SETTINGS = table("settings", "one setting of the analysis",
    Column("name", pl.String, "job_steps, assumed_steps, …"),
    Column("value", pl.Float64, "its value"),
)

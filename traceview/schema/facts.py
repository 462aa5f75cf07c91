"""Tables of facts that rules and the report's sections share (``traceview.derive.facts``)."""

from __future__ import annotations

import polars as pl

from traceview.schema.columns import COMPILE, FAILED_GUARD, RAW, RECOMPILED, Column, table

_STANCE = Column("stance", pl.String, "compiled or eager")
_FILE = Column("file", pl.String, "user's own file; null: not known")
_LINE = Column("line", pl.Int32, "line there")

COMPILE_REGIONS = table("compile_regions", "one compile and the region that it belongs to; compiles of no known region have no row",
    *COMPILE,
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "see regions"),
    Column("is_forward", pl.Boolean, "see compiles: forward and backward share a compile_key"),
    Column("started_us", pl.Float64, "see compiles"),
)

RECOMPILE_CAUSES = table("recompile_causes", "one recompile, with the failed guard that decided it",
    *COMPILE,
    Column("cause_id", pl.Int32, "recompiles of one pass with the same number have one cause: the same function, kind and source"),
    *RECOMPILED,
    Column("function", pl.String, "co_name, or the function that code after a graph break is of"),
    Column("is_wrapper", pl.Boolean, "the code object is torch's own function around the callable"),
    Column("failed_compile_id", pl.String, "the cache entry whose guard failed"),
    Column("guard", pl.String, "the guard as torch wrote it"),
    Column("kind", pl.String, "see recompiles; value also where an argument is a tensor in some calls and None in others"),
    Column("family", pl.String, "what changed: size, module_int, constant, resumed (a value handed across a graph break), identity, length, tensor (a property of one), state, backend, other"),
    Column("size_reason", pl.String, "of family size, why the compiled code did not serve the new size: zero_one, parameter, static, pinned, first_change"),
    Column("parameters", pl.List(pl.String), "of size_reason parameter, the parameters whose sizes differ"),
    *FAILED_GUARD,
    Column("origin", pl.String, "see recompiles"),
    raw=True,
)

BREAK_SITES = table("break_sites", "one reason for graph breaks at one line, with all breaks of it",
    Column("file", pl.String, "user's own file, whose line breaks or calls what breaks; null: not known"),
    Column("line", pl.Int32, "line there"),
    Column("function", pl.String, "function there"),
    Column("inside_file", pl.String, "library's file that the line led to; null: the line itself breaks"),
    Column("inside_line", pl.Int32, "line there"),
    Column("inside_function", pl.String, "function there"),
    Column("kinds", pl.List(pl.String), "what breaks: item (a tensor's value becomes a number), data_dependent (control flow on a value), io, dynamic_shape, asked (torch._dynamo.graph_break()), disabled (torch.compiler.disable), backward, optimizer, custom_op (no fake implementation), wrapper (DDP's own code), secondary (follows from another break), other"),
    Column("gb_id", pl.String, "torch's id (GB0124)"),
    Column("gb_type", pl.String, "torch's Gb_type"),
    Column("reason", pl.String, "the whole reason"),
    Column("explanation", pl.String, "torch's Explanation"),
    Column("hints", pl.List(pl.String), "torch's Hints"),
    Column("context", pl.String, "Developer debug context"),
    Column("times", pl.Int64, "compiles in which it was met"),
    Column("records", pl.Int64, "records of it in all logs"),
    Column("names_line", pl.Boolean, "the log names the line, not only the compiled function"),
    Column("frame_skipped", pl.Boolean, "the whole frame was left in eager because of it"),
    Column("refused", pl.Boolean, "fullgraph=True made it an error"),
    Column("in_torch", pl.Boolean, "in torch's own code, and none of the user's was compiled around it"),
    Column("compile_keys", pl.List(pl.String), "compiles in which it was met"),
    Column("functions", pl.List(pl.String), "functions that were being compiled, file:line of each"),
    Column("resume_functions", pl.List(pl.String), "code that Dynamo compiled after the break, file:line of each; empty: none"),
    Column("user_code", pl.String, "source text of the user's line, where a log quotes it"),
    Column("broken_code", pl.String, "source text of the line that breaks, be it a library's"),
    *RAW,
)

BREAK_COSTS = table("break_costs", "what the graph breaks at one line cost, in the measured pass of the first rank",
    Column("file", pl.String, "as in break_sites"),
    Column("line", pl.Int32, "as in break_sites"),
    Column("refused", pl.Boolean, "as in break_sites: a line may have a row for each"),
    Column("ms", pl.Float64, "per step; null: not known"),
    Column("eager_ms", pl.Float64, "operators of the functions that break there, in no compiled graph"),
    Column("with_eager", pl.Boolean, "ms holds eager_ms, or the part of it at other lines"),
    Column("fusible_ms", pl.Float64, "per step, the most that fusing across it could save on top"),
    Column("seconds", pl.Float64, "once: compiles that failed; null: not known, or repeated each step"),
    Column("basis", pl.String, "parts (Python at the break, and entering compiled code once more), entries (the same, which this torch's profile does not separate), one_part (nothing ran compiled after it: operators of the functions at other lines), not_measured; where fullgraph=True refuses it: ended (the script), tried (compiled for nothing), tried_each_step"),
    Column("measured", pl.Boolean, "nothing that matters is estimated"),
    Column("all_ms", pl.Float64, "per step, what is seen of all breaks together"),
    Column("lines", pl.Int32, "lines that break: they share what no line shows"),
    Column("clock", pl.String, "device or host"),
)

CLEAN_PARTS = table("clean_parts", "one line without a graph break, below one that breaks: the largest parts of a compiled callable that compile as one graph, most time first",
    _FILE,
    _LINE,
    Column("calls", pl.Float64, "runs of the line in a step"),
    Column("eager_ms", pl.Float64, "of an eager step in kernels (on a CPU: operators) at it and at the lines that it calls, and of their backward"),
    Column("share", pl.Float64, "of all kernels of an eager step, 0 to 1"),
    Column("rest_eager_ms", pl.Float64, "of an eager step in the other lines of the calls that break"),
    Column("rest_compiled_ms", pl.Float64, "of a compiled step at these; null: not known"),
    Column("callee", pl.String, "what the line calls, as written there, of the largest three; null: nothing that could be compiled by itself"),
    Column("edit_line", pl.Int32, "line of the same file where that is made or defined"),
    Column("text", pl.String, "that line of the run's copy"),
    Column("before", pl.Boolean, "the new line goes before it (a decorator); else after it"),
    Column("added", pl.String, "the new line, which compiles it"),
)

OUTSIDE_WORK = table("outside_work", "what one line adds to a compiled step outside of compiled code, most expensive first within its kind",
    Column("kind", pl.String, "loading (a DataLoader's batches), python (of the script's own), copies (from pageable memory, and the wait for them, or into it), operators (in no compiled graph, with what a device waits for their launches)"),
    Column("what", pl.String, "of loading, the DataLoader's iterator; of copies, copy to the host where they are; of operators, the optimizer whose step they are"),
    _FILE,
    _LINE,
    Column("ms", pl.Float64, "per step, on the step as timed; null: a line that runs while a batch is fetched, whose time is that of the line that asks for the batch"),
    Column("waits_ms", pl.Float64, "of ms of operators, what a device waits for their launches; null: not of operators"),
    Column("share", pl.Float64, "of all that the account of the step finds, 0 to 1: steadier than ms where the machine is busy. Python at the line that calls compiled code counts as no more than what the timed step leaves: a thread that waits for its next call looks the same"),
)

HOST_STALLS = table("host_stalls", "what holds the host in compiled steps, apart from launching: one line of one kind, most expensive first",
    Column("kind", pl.String, "collection (Python's garbage collector), memory (taken from the driver or given back to it), custom_op (own code of an operator that is not torch's)"),
    Column("what", pl.String, "garbage collection; cudaMalloc, cudaFree, …; the operator's name"),
    Column("file", pl.String, "user's own file; of custom_op, the line of its code with most time, else the line that calls it; null: not known"),
    _LINE,
    Column("call_file", pl.String, "of custom_op, file of the line that calls it; null: not known"),
    Column("call_line", pl.Int32, "line there"),
    Column("ms", pl.Float64, "per step, on the step as timed; on a GPU, as far as the device waits"),
    Column("count", pl.Float64, "per step"),
    Column("full", pl.Float64, "of collection, collections of all generations per step; null: another kind"),
    Column("steps", pl.Float64, "part of the window's steps in which what happens, 0 to 1"),
    Column("clock", pl.String, "device or host"),
)

BUSY_THREADS = table("busy_threads", "one other Python thread of the script's, first the one that runs most while the steps' thread waits for Python's lock",
    Column("name", pl.String, "the thread's name"),
    Column("ran_ms", pl.Float64, "what it had of a processor in these waits, all looks together; null: not known"),
    Column("ran_looks", pl.Int32, "looks in which it had one"),
    Column("lock_wait_ms", pl.Float64, "median time until the step's thread has Python's lock again after giving it away"),
    Column("interval_ms", pl.Float64, "how long a thread that runs Python keeps the lock"),
    Column("looks", pl.Int32, "looks at it"),
    Column("file", pl.String, "user's own file of the line where it was seen most often; null: never in the user's code"),
    _LINE,
    Column("function", pl.String, "function there"),
    Column("seen", pl.Int32, "looks that saw it in that function"),
    Column("step_waits_ms", pl.Float64, "of a compiled step as timed, its thread wanted no processor: the most that the lock can cost; null: not known"),
)

SLOW_SWITCHES = table("slow_switches", "one switch of torch's that is on while the steps run and slows them",
    Column("name", pl.String, "as in environment"),
    Column("value", pl.String, "its value"),
    Column("file", pl.String, "user's own file of the line that names it; null: not known"),
    _LINE,
    Column("checks", pl.Float64, "of anomaly detection, gradients checked per step as profiled; null: not recorded, or another switch"),
    Column("ms", pl.Float64, "of these checks, their part of the profiled step on the step as timed; null: not known"),
)

STEP_SHARES = table("step_shares", "where the time of a compiled step goes, as parts of it",
    Column("compiled", pl.Float64, "of the host's time as profiled: in compiled callables and their backward, 0 to 1"),
    Column("waiting", pl.Float64, "of timed blocks: the step's thread wanted no processor, 0 to 1; null: not recorded"),
    Column("queued", pl.Float64, "of timed blocks: the step's thread was ready and had no processor, 0 to 1; null: not recorded"),
)

SCRIPT_ENDS = table("script_ends", "how one process of the script ended",
    Column("pid", pl.Int64, "process id"),
    Column("by_itself", pl.Boolean, "it came to its own end, without an error"),
    Column("after_calls_s", pl.Float64, "from the end of the last compiled call to the end of the script; null: it did not come to its own end, or not every call was recorded"),
)

READ_PLACES = table("read_places", "one place of the user's own that reads values from a GPU in every step, where no graph breaks, most expensive first",
    _STANCE,
    Column("file", pl.String, "user's own file"),
    Column("lines", pl.List(pl.Int64), "the place's lines that read, as in host_reads"),
    Column("asks", pl.String, "what asks for the value on the first of them"),
    Column("scalars", pl.Float64, "single values a step"),
    Column("tensors", pl.Float64, "copies of tensors a step"),
    Column("waited_ms", pl.Float64, "host time a step in calls that wait, as profiled"),
    Column("without_ms", pl.Float64, "a step without the place's reads, on the step as timed"),
    Column("saved_ms", pl.Float64, "the step as timed less without_ms"),
)

OUTPUT_VERDICTS = table("output_verdicts", "whether the outputs of one compiled callable agree with eager's",
    Column("pid", pl.Int64, "process id"),
    Column("region_id", pl.Int32, "the callable, as in regions"),
    Column("outcome", pl.String, "agree, random (they do with eager's random numbers), rounding (they do with eager's roundings too), differ, not_compared"),
    Column("judged_run", pl.String, "run of output_checks to judge by: compiled, or fallback_random where random numbers may explain the difference"),
    Column("ladder_agrees", pl.Boolean, "every stage of the compiler agrees with eager's random numbers and roundings; null: not tried"),
    Column("wrong_from", pl.String, "backend of the first stage that does not; null: none"),
    Column("wavering", pl.List(pl.String), "outputs in which eager does not agree with itself"),
)

SLOW_LOOPS = table("slow_loops", "one generated C++ kernel that computes functions one element at a time, or more than once, with the main reason",
    Column("group_id", pl.Int32, "see match_groups"),
    *COMPILE,
    Column("kernel_name", pl.String, "see generated_kernels"),
    Column("why", pl.String, "random (random numbers); no_vector_form (of the function); else why the loop is not vectorized: wrapped_index (an index with % or a division), loaded_index (a value that was read decides), few_elements (length), strided, not_vectorized (not known); or recomputed (several times for the same value), symbolic_index (divisions by symbolic sizes for each element)"),
    Column("functions", pl.List(pl.String), "what is computed so, most evaluations first: tanh, exp, rand, erfinv, …"),
    Column("evaluations", pl.Int64, "of these functions in one run of the kernel; null: a size is a symbol"),
    Column("distinct", pl.Int64, "of recomputed: different values among these, at most"),
    Column("length", pl.Int32, "elements of the innermost loop, or the distance of its elements, of few_elements"),
    Column("user_lines", pl.List(pl.String), "file:line of the user's source, nearest first"),
    Column("count", pl.Float64, "runs of the kernel per step"),
    Column("profiled_ms", pl.Float64, "of the kernel per step, as profiled, host"),
    Column("ms", pl.Float64, "on the step as timed; null: not known"),
    Column("slower_ms", pl.Float64, "of it, what its match group takes longer than the eager operators that it replaced; 0: it is no slower; null: not known"),
    raw=True,
)

WEIGHT_COPIES = table("weight_copies", "one generated kernel of a CPU's inference graph that copies weights of convolutions into another memory layout in every call",
    *COMPILE,
    Column("aot_id", pl.String, "see generated_kernels"),
    Column("kernel_name", pl.String, "see generated_kernels"),
    Column("weights", pl.Int32, "weights that all calls of it in the generated code copy"),
    Column("bytes", pl.Int64, "of these weights"),
    Column("user_lines", pl.List(pl.String), "file:line of the user's source, nearest first"),
    Column("count", pl.Float64, "runs of the kernel per step"),
    Column("profiled_ms", pl.Float64, "of the kernel per step, as profiled, host"),
    Column("share", pl.Float64, "of the elements that it touches, those of weights: 1 where it does nothing else"),
    Column("ms", pl.Float64, "that share of profiled_ms"),
    raw=True,
)

PROMOTIONS = table("promotions", "one compiled function in which a float64 tensor makes results float64 that would be narrower without it",
    *COMPILE,
    Column("sources", pl.List(pl.String), "what is float64 by itself: the source of an input, or the operator that makes it"),
    _FILE,
    _LINE,
    Column("operations", pl.Int32, "results of Dynamo's graph that are float64 because of it"),
    Column("returned", pl.Boolean, "such a result leaves the graph"),
    Column("ms", pl.Float64, "of a compiled step in the function's generated kernels that handle float64, as profiled; null: not profiled"),
    Column("clock", pl.String, "device or host"),
    raw=True,
)

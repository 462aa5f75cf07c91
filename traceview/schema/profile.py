"""Tables read from profiler traces (Kineto JSON), one set of rows per stance.

Times are nanoseconds relative to the window's own zero (``ts`` of a trace is µs with three decimals,
so ``round(ts * 1000)`` is exact; see the trace's ``baseTimeNanoseconds`` for Unix time).
"""

from __future__ import annotations

import polars as pl

from traceview.schema.columns import Column, table

_STANCE = Column("stance", pl.String, "compiled or eager: which profiler window")
_ANCHOR = Column("anchor_region_id", pl.Int32, "region whose calls are the steps of that window; null: an optimizer's, or not known")
_STEP = Column("step", pl.Int32, "step within the window, from 0; null outside the marked steps")
_GRAPH = (
    Column("graph_key", pl.String, "hash of the enclosing CompiledFxGraph mark; null in eager code"),
    Column("compile_id", pl.String, "of the innermost Torch-Compiled Region, or by graph_key"),
)

KERNELS = table("kernels", "one execution on a device: kernel, copy or memset",
    _STANCE,
    _ANCHOR,
    _STEP,
    Column("name", pl.String, "kernel name as the profiler wrote it"),
    Column("kind", pl.String, "kernel, memcpy, memset"),
    Column("category", pl.String, "gemm, attention, convolution, generated_pointwise, generated_reduction, generated_persistent_reduction, generated_template, generated_foreach, generated_other, elementwise, reduction, normalization, indexing, optimizer, copy, memset, communication, user_kernel, other"),
    Column("device", pl.Int32, "device index"),
    Column("stream", pl.Int64, "stream"),
    Column("start_ns", pl.Int64, "start"),
    Column("duration_ns", pl.Int64, "device time"),
    Column("correlation", pl.Int64, "links the launch; all kernels of a cudagraph replay share one"),
    Column("launch_name", pl.String, "runtime or driver call that launched it; null if not found"),
    Column("launch_start_ns", pl.Int64, "start of that call on the host"),
    Column("launch_duration_ns", pl.Int64, "its host time"),
    Column("cpu_op", pl.String, "deepest operator around the launch"),
    Column("cpu_op_id", pl.Int64, "row of it in cpu_ops (op_id)"),
    *_GRAPH,
    Column("in_cudagraph", pl.Boolean, "launched by cudaGraphLaunch"),
    Column("bytes", pl.Int64, "bytes moved, for copies and memsets"),
    Column("grid", pl.String, "grid, as written"),
    Column("block", pl.String, "block, as written"),
    Column("multiprocessors", pl.Int32, "of the trace's first device (SMs); null: not recorded"),
    Column("region", pl.String, "traceview's own mark of the enclosing region call; null outside"),
)

KERNEL_LAUNCHES = table("kernel_launches", "one CUDA runtime or driver call on the host",
    _STANCE,
    _ANCHOR,
    _STEP,
    Column("name", pl.String, "cudaLaunchKernel, cuLaunchKernel, cudaGraphLaunch, cudaStreamSynchronize, …"),
    Column("kind", pl.String, "launch, graph_launch, sync, alloc, copy, other"),
    Column("tid", pl.String, "host thread"),
    Column("start_ns", pl.Int64, "start"),
    Column("duration_ns", pl.Int64, "host time"),
    Column("correlation", pl.Int64, "links the kernels"),
    Column("kernels", pl.Int32, "device executions that it led to"),
    *_GRAPH,
)

CPU_OPS = table("cpu_ops", "one operator or mark on a host thread",
    _STANCE,
    _ANCHOR,
    _STEP,
    Column("op_id", pl.Int64, "row number within the window, in order of start"),
    Column("parent_id", pl.Int64, "enclosing op on the same thread; null at the top"),
    Column("depth", pl.Int32, "0 at the top"),
    Column("name", pl.String, "aten::add, cpp_fused_…, Torch-Compiled Region: 0/0, …"),
    Column("kind", pl.String, "cpu_op, user_annotation"),
    Column("category", pl.String, "as in kernels, for operators that do the work on a CPU, unlisted for torch's operators of no such kind; else overhead (torch.compile's marks), mark, other"),
    Column("tid", pl.String, "host thread"),
    Column("start_ns", pl.Int64, "start"),
    Column("duration_ns", pl.Int64, "host time"),
    Column("self_ns", pl.Int64, "less that of direct children"),
    Column("external_id", pl.Int64, "External id"),
    Column("sequence", pl.Int64, "Sequence number: links forward and backward"),
    Column("input_dims", pl.String, "as written, JSON text"),
    Column("input_types", pl.String, "as written, JSON text"),
    Column("input_strides", pl.String, "as written, JSON text"),
    Column("concrete_inputs", pl.String, "values of inputs that are no tensors, as written, JSON text"),
    *_GRAPH,
    Column("kernel_file", pl.String, "file of the generated Triton kernel"),
    Column("region", pl.String, "traceview's own mark of the enclosing region call; null outside"),
)

LINE_OPS = table("line_ops", "one host event of a lines window: one step under the profiler with the user's lines marked in it",
    _STANCE,
    _ANCHOR,
    Column("op_id", pl.Int64, "row number within the step, in order of start"),
    Column("parent_id", pl.Int64, "enclosing event on the same thread; null at the top"),
    Column("depth", pl.Int32, "0 at the top"),
    Column("name", pl.String, "operator, call or mark; a line's is file:line"),
    Column("kind", pl.String, "cpu_op, user_annotation, call (CUDA runtime or driver), line (the user's line is being run)"),
    Column("tid", pl.String, "host thread"),
    Column("start_ns", pl.Int64, "start; the marks make Python slow here: not comparable with other times"),
    Column("duration_ns", pl.Int64, "host time"),
    Column("self_ns", pl.Int64, "less that of direct children"),
    Column("sequence", pl.Int64, "Sequence number: links forward and backward"),
    Column("file", pl.String, "of the innermost line around it on its thread; null: none, or in a compiled graph"),
    Column("line", pl.Int32, "line there"),
    Column("region", pl.String, "traceview's own mark of the enclosing region call; null outside"),
)

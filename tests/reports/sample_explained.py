"""The explanation that goes with ``sample.helped``: pointwise work beside two matrix products."""

from traceview.diagnosis.explanation import (
    AccountDetail,
    Autotuned,
    CallPart,
    Ceiling,
    Effect,
    EffectRow,
    Explanation,
    FirstCallPart,
    FusionNote,
    GraphPass,
    GroupKernel,
    GuardCost,
    KernelLimit,
    MatchGroup,
    Matching,
    PhaseSpan,
    ProfilerCost,
    StepLimit,
    StepTimeline,
    TimelineLane,
    TimelineSpan,
    WorkerTime,
)

SCRIPT = "/home/ada/train/model.py"
TRITON = "triton_poi_fused_add_mul_relu_sigmoid_tanh_0"
ELEMENTWISE = "vectorized_elementwise_kernel<4, sigmoid>"
GEMM = "sm90_xmma_gemm_f32f32"
MIB = 1024**2

WATERFALL = (
    Effect("fusion", -3.16, 3.54, 0.38, "device", "measured", (
        EffectRow("34 kernels → 1 kernel", 0, SCRIPT, 42, 3.42, 0.38, -3.04),
        EffectRow("mean_kernel", 2, SCRIPT, 43, 0.12, 0.0, -0.12),
    )),
    Effect("launches_saved", -0.62, 0.70, 0.08, "device", "derived", (
        EffectRow("idle: waiting for launches", None, None, None, 0.70, 0.08, -0.62),
    )),
    Effect("overheads_added", 0.02, None, 0.02, "host", "measured", (
        EffectRow("cache look-up", None, None, None, None, 0.02, 0.02),
    )),
    Effect("unexplained", 0.0, 0.06, 0.01, "device", "derived"),
)  # fmt: skip
DETAILS = (
    AccountDetail("eager", "idle_launch_bound", "cudaLaunchKernel", SCRIPT, 42, 0.64, 34.0,
                  "device"),
    AccountDetail("compiled", "idle_sync", "cudaStreamSynchronize", SCRIPT, 43, 0.07, 1.0,
                  "device"),
    AccountDetail("compiled", "gemm", GEMM, SCRIPT, 44, 0.31, 2.0, "device"),
)  # fmt: skip
PROFILER = (
    ProfilerCost("eager", 5.1, 4.55, 4.55, 212.0, 1.4, 0.06),
    ProfilerCost("compiled", 1.2, 0.79, 0.79, 31.0, 1.4, 0.01, 0.0, None),
)
GROUPS = (
    MatchGroup(0, "fused", True, 34.0, 3.42, 1.0, 0.38,
               ("aten.sigmoid", "aten.tanh", "aten.mul", "aten.add", "aten.relu"),
               (f"{SCRIPT}:42", f"{SCRIPT}:44"), ("0/0",), "device", "provenance", (
        GroupKernel("eager", ELEMENTWISE, "elementwise", "aten::sigmoid", SCRIPT, 42, None,
                    ("aten.sigmoid",), 30.0, 3.0, "line"),
        GroupKernel("eager", "copy_kernel", "copy", "aten::copy_", SCRIPT, 42, None,
                    ("aten.copy_",), 4.0, 0.42, "forward"),
        GroupKernel("compiled", TRITON, "generated_pointwise", None, SCRIPT, 42, "0/0",
                    ("aten.sigmoid", "aten.tanh"), 1.0, 0.38, "provenance"),
    )),
    MatchGroup(1, "library", True, 2.0, 0.31, 2.0, 0.31, ("aten.mm",), (f"{SCRIPT}:45",),
               ("0/0",), "device", "name", (
        GroupKernel("eager", GEMM, "gemm", "aten::mm", SCRIPT, 45, None, ("aten.mm",), 2.0, 0.31,
                    "line"),
        GroupKernel("compiled", GEMM, "gemm", "aten::mm", SCRIPT, 45, "0/0", ("aten.mm",), 2.0,
                    0.31, "name"),
    )),
    MatchGroup(2, "eager_only", False, 1.0, 0.12, 0.0, None, ("aten.mean",), (f"{SCRIPT}:43",),
               (), "device", None, (
        GroupKernel("eager", "reduce_kernel<512>", "reduction", "aten::mean", SCRIPT, 43, None,
                    ("aten.mean",), 1.0, 0.12, None),
    )),
)  # fmt: skip
MATCHING = Matching(GROUPS, 0.969, 1.0, 0.98, 3)
CEILINGS = (
    Ceiling("copy", None, 4010.0, "GB/s", "1 GiB", None, 20, "device"),
    Ceiling("l2_copy", None, 9200.0, "GB/s", "16 MiB", None, 20, "device"),
    Ceiling("matmul", "float32", 51.2, "TFLOP/s", "8192x8192x8192", "tf32 off", 10, "device"),
    Ceiling("matmul", "bfloat16", 712.0, "TFLOP/s", "8192x8192x8192", None, 10, "device"),
    Ceiling("launch", None, 2.1, "us", None, None, 1000, "host"),
)
LIMITS = (
    KernelLimit("eager", ELEMENTWISE, "elementwise", None, "[1024, 4096]", "float32", 34.0, 3.42,
                "device", 33554432, "input_dims", None, None, 333.6, None, 0.285, 0.083, "memory",
                "copy"),
    KernelLimit("compiled", TRITON, "generated_pointwise", "0/0", "[1024, 4096]", "float32", 1.0,
                0.38, "device", 1342177280, "generated_code", None, None, 3532.0, None, 0.335, 0.88,
                "memory", "copy"),
    KernelLimit("eager", GEMM, "gemm", None, "[1024, 4096] x [4096, 1024]", "float32", 2.0, 0.31,
                "device", 37748736, "input_dims", 8589934592, "input_dims", 243.5, 46.1, 0.281,
                0.9, "compute", "matmul_float32"),
    KernelLimit("compiled", GEMM, "gemm", "0/0", "[1024, 4096] x [4096, 1024]", "float32", 2.0,
                0.31, "device", 37748736, "graph_metadata", 8589934592, "graph_metadata", 243.5,
                46.1, 0.281, 0.9, "compute", "matmul_float32"),
    KernelLimit("eager", "reduce_kernel<512>", "reduction", None, None, None, 1.0, 0.12, "device",
                None, None, None, None, None, None, None, None, None, None),
)  # fmt: skip
STEP_LIMITS = (
    StepLimit("eager", 4.55, 3.85, 3.73, 0.69, 3.1, 0.64, 0.64,
              "At the limit this step would take 0.69 ms. The GPU waits 0.64 ms for launches."),
    StepLimit("compiled", 0.79, 0.69, 0.69, 0.62, 0.02, 0.07, 0.0,
              "At the limit this step would take 0.62 ms; fusing all that is left could save at "
              "most 0.02 ms; 0.07 ms is idle."),
)  # fmt: skip


def _spans(start, step, many, length, label, category):
    return tuple(TimelineSpan(start + i * step, length, label, category) for i in range(many))


TIMELINES = (
    StepTimeline("eager", 3, 5.1, (
        TimelineLane("host", (TimelineSpan(0.02, 0.2, "DataLoader", "python"),
                              *_spans(0.3, 0.12, 34, 0.09, "aten::sigmoid", "elementwise"),
                              TimelineSpan(4.5, 0.3, "aten::mm", "gemm"))),
        TimelineLane("stream 7", (*_spans(0.4, 0.12, 34, 0.1, ELEMENTWISE, "elementwise"),
                                  TimelineSpan(4.6, 0.15, GEMM, "gemm"),
                                  TimelineSpan(4.76, 0.15, GEMM, "gemm"))),
    ), 12),
    StepTimeline("compiled", 3, 1.2, (
        TimelineLane("host", (TimelineSpan(0.0, 0.011, "Cache lookup", "overhead_cache_lookup"),
                              TimelineSpan(0.05, 0.4, "Torch-Compiled Region: 0/0",
                                           "overhead_compiled_region"),
                              TimelineSpan(0.7, 0.4, "cudaStreamSynchronize", "idle_sync"))),
        TimelineLane("stream 7", (TimelineSpan(0.2, 0.38, TRITON, "generated_pointwise"),
                                  TimelineSpan(0.6, 0.31, GEMM, "gemm"))),
        TimelineLane("stream 13", (TimelineSpan(0.3, 0.1, "Memcpy HtoD", "copy"),)),
    )),
)  # fmt: skip
FUSION = (
    FusionNote("fused", "Five operators became one kernel.", None, "0/0", (TRITON,),
               ("aten.sigmoid", "aten.tanh"), (f"{SCRIPT}:42",), 134217728, None, 1),
    FusionNote("refused", "The mean and the addition after it stay apart.",
               "intermediate nodes between node1 & node2", "0/0", (TRITON,), ("aten.mean",),
               (f"{SCRIPT}:43",), 16777216, None, 2),
    FusionNote("epilogue_not_tried", "The addition after the matrix product runs as a kernel of "
               "its own.", None, "0/0", (GEMM,), ("aten.mm", "aten.add"), (f"{SCRIPT}:45",), None,
               "max_autotune_gemm_backends", 1),
)  # fmt: skip
PASSES = (
    GraphPass("0/0", "0_inference", "joint_graph", 44, 40, 2, None, None, ("clone ×4",), ()),
    GraphPass("0/0", "0_inference", "post_grad", 40, 37, 1, 1073741824, 150994944,
              ("mm ×1", "add ×1"), ("addmm ×1",)),
)  # fmt: skip
CALL_PATH = (
    CallPart("cache_lookup", 0, "0/0", 1.0, 11.0, 0.011, 11, 1000.0),
    CallPart("pregraph_bytecode", 0, "0/0", 1.0, 3.0, 0.003, None, None),
    CallPart("runtime_wrappers", None, None, 1.0, 6.0, 0.006, None, None),
)
GUARDS = (
    GuardCost("0/0", "forward", None, None, None, SCRIPT, 41, 11, 4.2, "torch's own measurement"),
    GuardCost("0/0", "forward", "check_tensor(L['x'], Tensor, float32, size=[1024, 4096])",
              "TENSOR_MATCH", "L['x']", SCRIPT, 42, 1, 1.3, "timed again"),
)  # fmt: skip
PHASES = (
    PhaseSpan("0/0", "dynamo", "Dynamo tracing", 10.0, 3.9, 0.6, 0, part="dynamo"),
    PhaseSpan("0/0", "aot", "AOTAutograd", 10.6, 3.3, 0.4, 1, part="aot"),
    PhaseSpan("0/0", "inductor", "Inductor", 11.0, 2.9, 1.3, 2, part="inductor"),
    PhaseSpan("0/0", "codegen", "code generation", 12.0, 1.6, 1.6, 3, part="codegen"),
    PhaseSpan(
        "0/0",
        "async_compile",
        "Triton/C++ compile",
        12.1,
        0.9,
        None,
        3,
        True,
        part="kernel_compile",
    ),
    PhaseSpan(
        "0/0",
        "async_compile",
        "Triton/C++ compile",
        12.2,
        1.1,
        None,
        3,
        True,
        part="kernel_compile",
    ),
    PhaseSpan("0/1", "dynamo", "Dynamo tracing", 15.2, 0.6, 0.6, 0, part="dynamo"),
    PhaseSpan(None, "other", "import of triton", 9.2, 0.5, 0.5, 0),
)
FIRST_CALLS = (
    FirstCallPart(0, "dynamo", 610.0), FirstCallPart(0, "aot", 420.0),
    FirstCallPart(0, "inductor", 1300.0), FirstCallPart(0, "codegen", 700.0),
    FirstCallPart(0, "kernel_compile", 1500.0), FirstCallPart(0, "first_run", 150.0),
    FirstCallPart(0, "unexplained", 30.0),
)  # fmt: skip
AUTOTUNING = (
    Autotuned("mm", "1024x4096, 4096x1024", "triton_mm_17", 0.151, "aten.mm", 0.155, "aten.mm",
              0.155, 20, 1.9),
    Autotuned("addmm", None, "bias_addmm", 0.2, None, None, None, None, 1, None),
)  # fmt: skip
WARM_FIRST_CALLS = (FirstCallPart(0, "dynamo", 600.0), FirstCallPart(0, "first_run", 140.0))
FULL = Explanation(
    waterfall=WATERFALL,
    details=DETAILS,
    profiler=PROFILER,
    matching=MATCHING,
    ceilings=CEILINGS,
    limits=LIMITS,
    step_limits=STEP_LIMITS,
    timelines=TIMELINES,
    fusion=FUSION,
    passes=PASSES,
    call_path=CALL_PATH,
    guards=GUARDS,
    phases=PHASES,
    workers=(WorkerTime("0/0", "Triton kernels", 3, 2.0, 1.1),),
    first_calls=FIRST_CALLS,
    warm_first_calls=WARM_FIRST_CALLS,
    autotuning=AUTOTUNING,
)

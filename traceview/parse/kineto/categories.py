"""Kernel categories: what kind of work a kernel, or an operator on a CPU, does.

The order of evidence: what Inductor generated says so in its own name; then the operator around
the launch, which knows what was asked for; then whose kernel it is: one that an operator of
another library launches, or that is launched as Triton does it without any operator, is the user's;
then the kernel's name, which knows how a library does it (``nvjet``, ``cutlass``, ``sm90_xmma``:
GEMM; ``fmha``, ``flash``: attention).
"""

from __future__ import annotations

import re
from functools import lru_cache

from traceview.torchtext import marks
from traceview.torchtext.fx import VIEWS

_GENERATED = {
    "poi": "generated_pointwise",
    "red": "generated_reduction",
    "per": "generated_persistent_reduction",
    "tem": "generated_template",
    "mm": "generated_template",
    "bmm": "generated_template",
    "for": "generated_foreach",
}
_TRITON = re.compile(r"^triton_([a-z]+)_")
_INDUCTOR = re.compile(r"^triton_[a-z]+_fused_|^triton_(?:tem|for|mm|bmm)_|^triton_\d*$")
_CPP = re.compile(r"^(?:graph_\d+_)?cpp_(?:fused|bmm|CppMicro|flex)?")
_CPP_REDUCTION = re.compile(
    r"_(?:sum|mean|amax|amin|max|min|argmax|argmin|prod|var|std|norm|var_mean|softmax|logsumexp"
    r"|layer_norm|batch_norm|group_norm|rms_norm|cumsum|any|all|nll_loss|mse_loss)(?:_|$)"
)
#: Operator names without their namespace and a trailing ``_``; the first pattern that fits decides.
_OPERATORS = tuple(
    (re.compile(pattern), category)
    for pattern, category in (
        (r"scaled_dot_product|(?:flash|efficient|flex|cudnn)_attention|_fused_sdp", "attention"),
        (r"^_?(?:all_?reduce|reduce_scatter|all_?gather|all_?to_?all|wait_tensor)|nccl|gloo",
         "communication"),
        (r"(?:layer|batch|group|rms|instance)_norm", "normalization"),
        (r"^_foreach_copy$", "copy"),
        (r"^_foreach_|^_fused_(?:adam|adamw|sgd|adagrad)|multi_tensor", "optimizer"),
        (r"conv(?:olution|_?\d?d|_transpose|_depthwise)|_convolution", "convolution"),
        (r"^(?:mm|addmm|bmm|baddbmm|addbmm|matmul|linear|linear_backward|mv|addmv|dot|vdot|ger|einsum"
         r"|_?int_mm|_scaled_mm|_scaled_grouped_mm|_grouped_mm|_addmm_activation|_mkl_linear"
         r"|_?(?:mkldnn_)?linear_pointwise|_?mkldnn_linear\w*|_sparse_semi_structured\w*)$",
         "gemm"),
        (r"^(?:index|gather|scatter|_?embedding|take|masked_select|masked_scatter|nonzero|_index_put_impl"
         r"|_unsafe_index|bucketize)|^(?:index|scatter|_?embedding)\w*", "indexing"),
        (r"^(?:zero|fill)$", "memset"),
        (r"^(?:copy|_to_copy|clone|cat|stack|constant_pad_nd|roll|flip|repeat)$", "copy"),
        (r"^(?:_?(?:log_)?softmax|sum|nansum|mean|max|min|amax|amin|aminmax|argmax|argmin|prod|var|std"
         r"|var_mean|norm|linalg_vector_norm|cumsum|cumprod|logsumexp|any|all|count_nonzero"
         r"|nll_loss\w*|cross_entropy\w*|mse_loss\w*|l1_loss|_?(?:adaptive_)?(?:avg|max)_pool\w*)"
         r"(?:_backward(?:_data)?)?$", "reduction"),
        (r"^(?:add|sub|rsub|mul|div|pow|neg|abs|sign|exp|expm1|exp2|log|log1p|log2|sqrt|rsqrt|reciprocal"
         r"|sin|cos|tan|tanh|sigmoid|erf|relu|relu6|leaky_relu|gelu|silu|mish|elu|hardtanh|hardswish"
         r"|hardsigmoid|softplus|threshold|clamp|clamp_min|clamp_max|where|maximum|minimum|eq|ne|lt|le|gt"
         r"|ge|logical_\w+|bitwise_\w+|floor|ceil|round|trunc|remainder|fmod|addcmul|addcdiv|lerp|square"
         r"|native_dropout|dropout|bernoulli|masked_fill|isnan|isinf|isfinite|tril|triu|arange|glu"
         r"|uniform|normal|randn|rand|atan|atan2|asin|acos|sinh|cosh|polar|complex)(?:_backward)?$",
         "elementwise"),
    )
)  # fmt: skip  # the patterns are as wide as a line already
_KERNELS = tuple(
    (re.compile(pattern, re.IGNORECASE), category)
    for pattern, category in (
        (r"nccl", "communication"),
        (r"flash|fmha|attention|sdpa|compute_dot_do_o|convert_dq_to", "attention"),
        (r"multi_tensor_apply|fused_?adam", "optimizer"),
        (
            r"layer_?norm|batch_?norm|group_?norm|rms_?norm|bn_(?:fw|bw)|RowwiseMoments|GammaBeta",
            "normalization",
        ),
        (
            r"implicit_gemm|conv|wgrad|dgrad|fprop|winograd|nchwToNhwc|nhwcToNchw|cudnn",
            "convolution",
        ),
        (r"nvjet|cutlass|xmma|gemm|gemv|cublas|splitK|dot_kernel", "gemm"),
        (r"softmax|reduce|argmax|cunn_|nll_loss|scan|cumsum", "reduction"),
        (r"index|embedding|gather|scatter|compute_grad_weight", "indexing"),
        (r"CatArray|copy|transpose_kernel", "copy"),
        (r"FillFunctor", "memset"),
        (r"elementwise|dropout|distribution", "elementwise"),
    )
)
#: Namespaces of torch's own operators and events.
TORCHS = frozenset(
    {
        "aten", "prim", "prims", "prims_rng", "c10d", "_c10d_functional", "c10d_functional", "nccl",
        "gloo", "autograd", "torch", "inductor", "quantized", "quantized_decomposed", "mkldnn",
        "mkldnn_prepacked", "onednn", "mkl", "profiler", "rngprims", "streams", "static_runtime",
        "prepacked", "sparse", "symm_mem", "fsdp", "_dtensor", "debug_prims", "bundled_sequence",
        "_c10d_functional_autograd", "_native", "_quantized", "quantization", "ao", "higher_order",
        "debugprims", "debug_mode_ops", "_inductor_debug", "inductor_prims", "bucketing", "export",
        "flex_lib", "torch_attn", "device_mesh", "semi_structured", "onnx", "onnx_symbolic",
        "triton",
    }
)  # fmt: skip  # names, of which none needs a line of its own
#: Categories of work that Inductor has code for.
FUSIBLE = ("elementwise", "reduction", "normalization", "copy", "memset", "indexing")
USER_KERNEL = "user_kernel"
#: An operator of torch's in no family above: it works where no operator within it does, or where it
#: takes longer than they do.
UNLISTED = "unlisted"
#: Operators that compute nothing: views, new memory, questions, the way into others.
_ARRANGES = re.compile(
    r"(?:new_)?empty\w*|view\w*|resize\w*|_?reshape\w*|contiguous|to|type_as|set|item|data|is_\w+"
    r"|_local_scalar_dense|_has_\w+|result_type|(?:sym_)?(?:size|stride|numel|storage_offset)|dim"
    r"|resolve_\w+|retain_grad|requires_grad|record_stream|lift\w*|_?(?:assert|functional)_\w+"
    r"|unsafe_(?:chunk|split\w*)|broadcast_tensors|meshgrid|pin_memory|_?nested_\w+|atleast_\wd"
)
#: Kernels of NVIDIA's libraries, which launch through the driver too.
_LIBRARY = re.compile(r"nvjet|cutlass|xmma|cublas|cudnn|splitK|sm\d\d_", re.IGNORECASE)
_MEMORY = {"memcpy": "copy", "memset": "memset"}


@lru_cache(maxsize=65536)
def categorize(
    name: str, cpu_op: str | None = None, kind: str = "kernel", launch_name: str | None = None
) -> str:
    """Category of a device execution (``kind``: kernel, memcpy, memset), as in ``kernels``."""
    known = _MEMORY.get(kind) or _generated(name)
    known = known or ("communication" if "nccl" in name.lower() else None)
    known = known or (operator_category(cpu_op) if cpu_op else None)
    if known:
        return known
    if cpu_op is not None and "::" in cpu_op:
        users = is_foreign(cpu_op)
    else:  # Triton launches through the driver, without an operator
        by_driver = launch_name is not None and launch_name.startswith("cuLaunchKernel")
        users = by_driver and name.isidentifier() and _LIBRARY.search(name) is None
    if users:
        return USER_KERNEL
    return next((category for pattern, category in _KERNELS if pattern.search(name)), "other")


def is_foreign(operator: str) -> bool:
    """Whether an operator is of a namespace that is not torch's own."""
    namespace, separator, _ = operator.partition("::")
    return bool(separator) and namespace.isidentifier() and namespace not in TORCHS


def is_users(operator: str) -> bool:
    """Whether ``mylib.scale`` is the user's own code, a custom operator or Triton of its own.

    Inductor calls it as it is: no kernel that it generates computes a part of it.
    """
    namespace, _, name = operator.partition(".")
    if namespace == "higher_order":
        return name.startswith("triton_kernel_wrapper")
    return is_foreign(f"{namespace}::{name}")


@lru_cache(maxsize=65536)
def cpu_category(name: str, kind: str = "cpu_op") -> str:
    """Category of one host event, as in ``cpu_ops``; whether it delegates is not asked here."""
    if marks.part_of_call(name):
        return "overhead"
    if kind != "cpu_op":
        return "mark"
    known = _generated(name) or operator_category(name)
    if known or is_foreign(name):
        return known or USER_KERNEL
    namespace, _, base = name.partition("::")
    base = base.split(".", 1)[0].rstrip("_")
    arranges = f"aten.{base}" in VIEWS or _ARRANGES.fullmatch(base)
    return "other" if namespace != "aten" or arranges else UNLISTED


def operator_category(name: str) -> str | None:
    """Category of an operator (``aten::addmm``: gemm); None if it only arranges or is unknown."""
    namespace, separator, base = name.rpartition("::")
    if not separator or namespace.startswith("autograd"):
        return None
    base = base.split(".", 1)[0].rstrip("_")
    return next((category for pattern, category in _OPERATORS if pattern.search(base)), None)


def _generated(name: str) -> str | None:
    if _INDUCTOR.match(name):
        match = _TRITON.match(name)
        return _GENERATED.get(match[1] if match else "", "generated_other")
    match = _CPP.match(name)
    if match is None:
        return None
    if not match[0].endswith("fused"):
        return "generated_template"
    return "generated_reduction" if _CPP_REDUCTION.search(name) else "generated_pointwise"

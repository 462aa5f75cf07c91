"""Whose kernel it is: Inductor's, torch's, a library's or the user's own."""

import pytest

from traceview.parse.kineto.categories import categorize, cpu_category

TRITON = "cuLaunchKernelEx"


@pytest.mark.parametrize(
    ("name", "cpu_op", "launch", "category"),
    [
        ("my_softmax", None, TRITON, "user_kernel"),
        ("my_softmax", "Torch-Compiled Region: 0/0", "cuLaunchKernel", "user_kernel"),
        ("my_softmax", "my_softmax", "cuLaunchKernel", "user_kernel"),
        ("fused_rope", "mylib::rope", "cudaLaunchKernel", "user_kernel"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0", TRITON, "generated_pointwise"),
        ("nvjet_tst_128x128", "aten::mm", TRITON, "gemm"),
        ("nvjet_tst_128x128", None, TRITON, "gemm"),
        ("void at::native::reduce_kernel<512>(int)", None, "cudaLaunchKernel", "reduction"),
        ("my_softmax", None, "cudaGraphLaunch", "reduction"),
        ("mystery", "aten::frobnicate", "cudaLaunchKernel", "other"),
        ("flash_fwd_kernel", "flash_attn::_flash_attention_forward", TRITON, "attention"),
    ],
)
def test_kernels(name, cpu_op, launch, category):
    assert categorize(name, cpu_op, "kernel", launch) == category


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("mylib::shift_rows", "user_kernel"),
        ("mylib::layer_norm", "normalization"),
        ("aten::frobnicate", "other"),
        ("autograd::engine::evaluate_function: MulBackward0", "other"),
        ("torch::autograd::AccumulateGrad", "other"),
        ("c10d::allreduce_", "communication"),
        ("DistributedDataParallel.forward", "other"),
    ],
)
def test_operators_on_a_cpu(name, category):
    assert cpu_category(name) == category

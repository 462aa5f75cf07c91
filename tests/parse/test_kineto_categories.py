"""Whose kernel it is: Inductor's, torch's, a library's or the user's own."""

import pytest
from kineto_traces import column, cpp_layout, event, kernel, launch, read

from traceview.parse.kineto.categories import TORCHS, categorize, cpu_category

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
        ("triton_poi_fused_add_0", "generated_pointwise"),
        ("triton_red_fused_sum_1", "generated_reduction"),
        ("triton_per_fused__softmax_2", "generated_persistent_reduction"),
        ("triton_tem_fused_mm_3", "generated_template"),
        # Inductor's name for one kernel over a list of tensors: torch._foreach_*, optimizers.
        ("triton_for_fused_add_addcmul_lerp_4", "generated_foreach"),
        ("triton_for_fused_5", "generated_foreach"),
        ("triton_unk_fused_sum_6", "generated_other"),
        ("void at::native::multi_tensor_apply_kernel<at::native::Ops>(int)", "optimizer"),
    ],
)
@pytest.mark.parametrize("cpu_op", [None, "aten::_foreach_add_", "CompiledFunction"])
def test_a_generated_kernel_says_itself_what_it_is(name, category, cpu_op):
    assert categorize(name, cpu_op, "kernel", TRITON) == category


def test_a_generated_foreach_kernel_in_a_trace(tmp_path):
    named = "triton_for_fused_add_mul_0"
    events = [
        event("## Call CompiledFxGraph fabc ##", "user_annotation", 0, 60),
        event(named, "cpu_op", 5, 20, stream=0),
        launch(10, 2, 1, name="cuLaunchKernel", cat="cuda_driver"),
        kernel(named, 20, 8, 1),
        launch(40, 2, 2),
        kernel("void at::native::multi_tensor_apply_kernel<>(int)", 45, 4, 2),
    ]
    tables, _ = read(tmp_path / "t.json", cpp_layout(events))
    assert tables["kernels"]["category"].to_list() == ["generated_foreach", "optimizer"]
    assert column(tables["cpu_ops"], "name", "category")[named] == "generated_foreach"


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("mylib::shift_rows", "user_kernel"),
        ("mylib::layer_norm", "normalization"),
        ("aten::frobnicate", "unlisted"),
        ("aten::grid_sampler_2d", "unlisted"),
        ("aten::select", "other"),
        ("aten::empty_strided", "other"),
        ("aten::_local_scalar_dense", "other"),
        ("autograd::engine::evaluate_function: MulBackward0", "other"),
        ("torch::autograd::AccumulateGrad", "other"),
        ("c10d::allreduce_", "communication"),
        ("DistributedDataParallel.forward", "other"),
    ],
)
def test_operators_on_a_cpu(name, category):
    assert cpu_category(name) == category


def test_namespaces_of_torchs_operators_are_known():
    torch = pytest.importorskip("torch")
    higher_order = "higher_order"  # the dispatcher doesn't list these
    names = [schema.name for schema in torch._C._jit_get_all_schemas()]
    known = {name.partition("::")[0] for name in names} | {higher_order}
    # Some are made by tests, torch's own and these.
    assert {name for name in known - TORCHS if not name.endswith("test")} == set()

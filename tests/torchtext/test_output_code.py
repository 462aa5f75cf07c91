"""Generated code read as text: kernels, library calls, operators, lines."""

import pytest

from traceview.torchtext.output_code import category_of, named_operators, parse_output_code

# The shape that torch/_inductor/codegen/{triton,wrapper}.py write, shortened.
TRITON = """\
# AOT ID: ['0_inference']
import torch
aten = torch.ops.aten
async_compile = AsyncCompile()


# kernel path: /tmp/torchinductor_me/ab/cabc.py
# Topologically Sorted Source Nodes: [sin, add], Original ATen: [aten.sin, aten.add]
# Source node to ATen node mapping:
#   add => add
#   sin => sin
# Graph fragment:
#   %sin : [num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%x,))
triton_poi_fused_add_sin_0 = async_compile.triton('triton_poi_fused_add_sin_0', '''
import triton
@triton.jit
def triton_poi_fused_add_sin_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp1 = extern_kernels.mm(1)  # not a call: text of a kernel
''', device_str='cuda')


# Original path: /home/me/k.py
add_kernel_0 = async_compile.triton('add_kernel', '''
import triton
''', device_str='cuda')


async_compile.wait(globals())
del async_compile

def call(args):
    arg0_1, = args
    with torch.cuda._DeviceGuard(0):
        buf0 = empty_strided_cuda((8, ), (1, ), torch.float32)
        # Topologically Sorted Source Nodes: [sin, add], Original ATen: [aten.sin, aten.add]
        stream0 = get_raw_stream(0)
        triton_poi_fused_add_sin_0.run(arg0_1, buf0, 8, stream=stream0)
        buf1 = empty_strided_cuda((8, ), (1, ), torch.float32)
        # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.addmm]
        extern_kernels.addmm(arg0_1, buf0, out=buf1)
        triton_poi_fused_add_sin_0.run(buf1, buf0, 8, stream=stream0)
        add_kernel_0.run(buf0, 8, stream=stream0)
        # Topologically Sorted Source Nodes: [sort], Original ATen: [aten.sort]
        buf2 = torch.ops.aten.sort.stable(buf1, stable=False)
        buf3 = torch.ops.inductor._reinterpret(buf2)
    return (buf2, )

def benchmark_compiled_module(times=10, repeat=10):
    triton_poi_fused_add_sin_0.run(None)
"""


@pytest.fixture(scope="module")
def kernels():
    return {kernel.name: kernel for kernel in parse_output_code(TRITON)[0]}


def test_what_the_module_defines_and_calls_is_found(kernels):
    found = {name: (kernel.category, kernel.launch_sites) for name, kernel in kernels.items()}
    assert found == {
        "triton_poi_fused_add_sin_0": ("pointwise", 2),
        "add_kernel_0": ("user_triton", 1),
        "extern_kernels.addmm": ("extern", 1),
        "torch.ops.aten.sort.stable": ("fallback", 1),
    }


def test_a_triton_kernel_carries_its_path_its_operators_and_its_source(kernels):
    kernel = kernels["triton_poi_fused_add_sin_0"]
    assert kernel.path == "/tmp/torchinductor_me/ab/cabc.py"
    assert (list(kernel.ops), list(kernel.nodes)) == (["aten.sin", "aten.add"], ["sin", "add"])
    assert kernel.source.startswith("\nimport triton")
    assert "XBLOCK" in kernel.source
    assert list(kernels["extern_kernels.addmm"].ops) == ["aten.addmm"]
    assert kernels["extern_kernels.addmm"].source is None


def test_every_call_stands_in_order_with_what_the_comments_above_it_say():
    calls = parse_output_code(TRITON)[1]
    assert [(call.kernel.name, list(call.nodes)) for call in calls] == [
        ("triton_poi_fused_add_sin_0", ["sin", "add"]),
        ("extern_kernels.addmm", ["linear"]),
        ("triton_poi_fused_add_sin_0", []),
        ("add_kernel_0", []),
        ("torch.ops.aten.sort.stable", ["sort"]),
    ]
    assert [call.handle for call in calls] == [None] * 5


def test_a_handle_is_its_own_calls_only():
    text = """
        # [Provenance debug handles] extern_kernels.mm:7
        extern_kernels.mm(a, b, out=c)
        extern_kernels.mm(c, b, out=a)
        # [Provenance debug handles] other_0:8
        extern_kernels.addmm(a, b, c)
"""
    assert [call.handle for call in parse_output_code(text)[1]] == [7, None, None]


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("triton_poi_fused_add_0", "pointwise"),
        ("triton_red_fused_sum_1", "reduction"),
        ("triton_per_fused_sum_1", "persistent_reduction"),
        ("triton_for_fused_2", "foreach"),
        ("triton_tem_fused_mm_3", "template"),
        ("triton_spl_fused_cumsum_3", "split_scan"),
        ("model_triton_poi_fused_add_0", "pointwise"),
        ("my_kernel_0", "user_triton"),
    ],
)
def test_categories_are_torchs_own(name, category):
    assert category_of(name, "triton") == category


@pytest.mark.parametrize(
    "text",
    ["", "x = async_compile.triton(", "# " * 50_000, "a = async_compile.cpp('''\n" * 9_999],
)
def test_damaged_code_gives_what_it_gives(text):
    assert all(kernel.launch_sites == 0 for kernel in parse_output_code(text)[0])


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("triton_poi_fused_add_gelu_0", ["add", "gelu"]),
        ("cpp_fused_add_clamp_native_layer_norm_12", ["add", "clamp", "native_layer_norm"]),
        ("triton_red_fused__to_copy_add_3", ["_to_copy", "add"]),
        ("triton_poi_fused_add_mystery_0", []),
        ("triton_poi_fused_" + "add_" * 10 + "3", []),  # torch leaves out those after the tenth
        ("extern_kernels.mm", []),
        ("fused_" + "a_" * 100_000 + "0", []),
    ],
)
def test_operators_by_a_kernels_name(name, operators):
    known = {"add", "gelu", "clamp", "native_layer_norm", "_to_copy", "layer", "norm"}
    assert named_operators(name, known) == operators

"""Weights that generated code lays out in every call, read from the code."""

from traceview.derive.facts.weight_copies import cast, laid_out
from traceview.torchtext.output_code import read_program

CODE = """
def call(args):
    arg0_1, arg1_1, arg2_1 = args
    assert_size_stride(arg0_1, (1, 8, 7, 7), (392, 49, 7, 1))
    assert_size_stride(arg1_1, (8, 8, 3, 3), {strides})
    buf0 = empty_strided_cpu((8, 8, 3, 3), (72, 1, 24, 8), torch.float32)
    cpp_fused_convolution_0(arg1_1, buf0)
    buf1 = extern_kernels.convolution(arg0_1, {weight}, arg2_1, stride=(1, 1), padding=(1, 1))
    return (buf1, )


def benchmark_compiled_module(times=10, repeat=10):
    arg0_1 = rand_strided((1, 8, 7, 7), (392, 49, 7, 1), device='cpu', dtype=torch.float32)
    arg1_1 = rand_strided((8, 8, 3, 3), {strides}, device='cpu', dtype=torch.float32)
"""


def copies(strides="(72, 9, 3, 1)", weight="buf0"):
    functions = read_program(CODE.format(strides=strides, weight=weight))
    return [dict(laid_out(function)) for function in functions if function.sites]


def test_a_kernel_that_fills_a_convolutions_weight_from_an_input():
    assert copies() == [{"cpp_fused_convolution_0": [(8 * 8 * 9 * 4, 1.0, "float32", "float32")]}]


def test_a_buffer_that_no_convolution_takes_is_no_weight():
    assert copies(weight="arg1_1") == [{}]


def test_the_same_layout_is_no_copy_for_the_layout():
    assert copies(strides="(72, 1, 24, 8)") == [{}]


CASTS = """
def call(args):
    arg0_1, arg1_1 = args
    assert_size_stride(arg0_1, (4, 8), (8, 1))
    assert_size_stride(arg1_1, (16, 8), (8, 1))
    buf0 = empty_strided_cpu((4, 8), (8, 1), torch.bfloat16)
    buf1 = empty_strided_cpu((16, 8), (8, 1), torch.{dtype})
    cpp_fused__to_copy_0(arg0_1, arg1_1, buf0, buf1)
    return (buf1, )


def benchmark_compiled_module(times=10, repeat=10):
    arg0_1 = rand_strided((4, 8), (8, 1), device='cpu', dtype=torch.float32)
    arg1_1 = rand_strided((16, 8), (8, 1), device='cpu', dtype=torch.float32)
"""


def casts(dtype="bfloat16"):
    functions = read_program(CASTS.format(dtype=dtype))
    return [dict(cast(f, frozenset({"arg1_1"}))) for f in functions if f.sites]


def test_a_kernel_that_casts_a_parameter_has_its_part_of_the_elements():
    assert casts() == [{"cpp_fused__to_copy_0": [(16 * 8 * 4, 0.8, "bfloat16", "float32")]}]


def test_a_copy_of_the_same_dtype_is_no_cast():
    assert casts("float32") == [{}]

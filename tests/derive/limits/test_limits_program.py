"""The call() of generated code: sites, buffers, and the kernels of a cudagraph replay."""

import pytest

from traceview.derive.limits.generated import library_work, site_tensors
from traceview.derive.limits.kernels import aligned
from traceview.torchtext.output_code import read_program

CODE = """
class Runner:
    def call(self, args):
        arg0_1, arg1_1, arg2_1 = args
        args.clear()
        assert_size_stride(arg0_1, (64, 512), (512, 1), 'input')
        assert_size_stride(arg1_1, (512, 512), (512, 1), 'input')
        s77 = arg2_1
        with torch.cuda._DeviceGuard(0):
            torch.cuda.set_device(0)
            buf0 = empty_strided_cuda((64, 512), (512, 1), torch.bfloat16)
            # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.mm]
            extern_kernels.mm(arg0_1, reinterpret_tensor(arg1_1, (512, 512), (1, 512), 0), out=buf0)
            buf1 = buf0; del buf0  # reuse
            stream0 = get_raw_stream(0)
            triton_poi_fused_relu_0.run(buf1, 32768, stream=stream0)
            buf2 = torch.ops.aten._scaled_dot_product_flash_attention.default(reinterpret_tensor(buf1, (2, 4, 32, 128), (16384, 128, 512, 1), 0), reinterpret_tensor(buf1, (2, 4, 32, 128), (16384, 128, 512, 1), 0), reinterpret_tensor(buf1, (2, 4, 32, 128), (16384, 128, 512, 1), 0), 0.0, True, scale=0.125)
            buf3 = buf2[0]
            assert_size_stride(buf3, (2, 4, 32, 128), (16384, 128, 512, 1))
            buf9 = empty_strided_cuda((s77, 512), (512, 1), torch.float32)
            triton_poi_fused_add_1.run(buf3, buf9, 32768, stream=stream0)
        return (buf9, reinterpret_tensor(buf1, (2, 4, 32, 128), (16384, 128, 512, 1), 0), )

runner = Runner(partitions=[])

def get_args():
    from torch._dynamo.testing import rand_strided
    arg0_1 = rand_strided((64, 512), (512, 1), device='cuda:0', dtype=torch.bfloat16)
    arg1_1 = rand_strided((512, 512), (512, 1), device='cuda:0', dtype=torch.bfloat16)
"""  # noqa: E501


def test_sites_in_order_with_their_tensors():
    (function,) = read_program(CODE)
    assert [(site.kernel, site.library) for site in function.sites] == [
        ("extern_kernels.mm", True),
        ("triton_poi_fused_relu_0", False),
        ("torch.ops.aten._scaled_dot_product_flash_attention.default", True),
        ("triton_poi_fused_add_1", False),
    ]
    left, right = site_tensors(function.sites[0].arguments)
    assert (left.dims, left.dtype) == ((64, 512), "bfloat16")
    assert (right.strides, right.dtype) == ((1, 512), "bfloat16")
    assert function.reused == {"s77": "arg2_1", "buf1": "buf0", "buf3": "buf2"}
    assert {"buf9", "buf1"} <= function.returned


def test_a_symbolic_size_is_not_known():
    (function,) = read_program(CODE)
    assert function.buffers["buf9"].dims == (None, 512)
    assert site_tensors(function.sites[3].arguments)[1] is None


def test_library_calls_of_the_code_have_their_operators_work():
    (function,) = read_program(CODE)
    product = library_work(function.sites[0])
    assert product.flops == 2 * 64 * 512 * 512
    assert product.bytes == 2 * (64 * 512 + 512 * 512 + 64 * 512)
    attention = library_work(function.sites[2])
    assert attention.flops == 2 * (2 * 2 * 4 * 32 * 32 * 128) // 2, "causal"


def test_kernels_of_a_replay_follow_the_code():
    functions = read_program(CODE)
    product, relu, attention, add = functions[0].sites
    # The product took two kernels, the attention one.
    names = ["nvjet_a", "splitK", "triton_poi_fused_relu_0", "fmha", "triton_poi_fused_add_1"]
    assert aligned(names, functions) == [product, product, relu, attention, add]


def test_a_replay_that_the_code_does_not_explain_is_left_alone():
    functions = read_program(CODE)
    swapped = ["nvjet", "triton_poi_fused_add_1", "fmha", "triton_poi_fused_relu_0"]
    assert aligned(swapped, functions) == [None] * 4
    assert aligned(["nvjet", "triton_poi_fused_relu_0"], functions) == [None, None]
    reused = "            buf1 = buf0;"
    again = "            extern_kernels.mm(buf0, arg1_1)\n"
    names = ["a", "b", "c", "triton_poi_fused_relu_0", "d", "triton_poi_fused_add_1"]
    found = aligned(names, read_program(CODE.replace(reused, again + reused)))
    assert found[:3] == [None] * 3, "three kernels of two calls"
    assert found[3].kernel == "triton_poi_fused_relu_0"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def call(args):\n    x = = 1\n",
        "def call(args):\n",
        "def call(args):\n    \0\n",
        "def call(args):\n    buf0 = " + "(" * 5000 + ")" * 5000 + "\n",
    ],
)
def test_what_is_no_code_gives_nothing(text):
    assert read_program(text) == []

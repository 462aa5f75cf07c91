"""What generated kernels read and write, from their source."""

import pytest

from traceview.derive.limits.generated import kernel_work
from traceview.derive.limits.work import Tensor
from traceview.torchtext.kernel_source import (
    float64_arguments,
    index_tests,
    read_kernel,
)
from traceview.torchtext.triton_values import (
    Additions,
    Reduction,
    additions,
    long_divisions,
    reduction,
    repeated_in_triton,
)

HEAD = """
@triton_heuristics.pointwise(
    size_hints={'x': 8192},
    triton_meta={'signature': {SIGNATURE, 'xnumel': 'i32', 'XBLOCK': 'constexpr'}},
)
@triton.jit
def triton_poi_fused_0(PARAMS, xnumel, XBLOCK : tl.constexpr):
"""


def triton(body, **pointers):
    signature = ", ".join(f"'{name}': '*{dtype}'" for name, dtype in pointers.items())
    head = HEAD.replace("SIGNATURE", signature).replace("PARAMS", ", ".join(pointers))
    return read_kernel(head + body)


def f32(*dims, strides=None):
    return Tensor(dims, "float32", strides)


SLICED = """
    xnumel = 1024
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    x0 = (xindex % 16)
    x1 = xindex // 16
    x2 = xindex
    tmp0 = tl.load(in_ptr0 + (x0 + 512*x1), xmask)
    tmp1 = tl.load(in_ptr1 + (x0), xmask, eviction_policy='evict_last')
    tl.store(out_ptr0 + (x2), tmp2, xmask)
"""


def test_a_slice_moves_what_is_touched_and_a_broadcast_input_its_own_size():
    source = triton(SLICED, in_ptr0="fp32", in_ptr1="fp32", out_ptr0="fp32")
    moved = 4 * (1024 + 16 + 1024)
    whole = [f32(64, 512), f32(16), f32(64, 16)]
    assert kernel_work(source, whole).bytes == moved
    assert kernel_work(source, []).bytes == moved, "the source alone tells as much"


def test_what_is_updated_in_place_counts_twice_and_a_fresh_buffer_once():
    updated = """
    xnumel = 256
    x0 = xindex
    tmp0 = tl.load(in_out_ptr0 + (x0), xmask)
    tl.store(in_out_ptr0 + (x0), tmp1, xmask)
"""
    fresh = """
    xnumel = 256
    x0 = xindex
    tl.store(in_out_ptr0 + (x0), tmp1, xmask)
    tmp2 = tl.load(in_out_ptr0 + (x0), xmask)
"""
    assert kernel_work(triton(updated, in_out_ptr0="bf16"), []).bytes == 2 * 2 * 256
    assert kernel_work(triton(fresh, in_out_ptr0="bf16"), []).bytes == 2 * 256


def test_two_places_of_one_tensor_are_at_most_the_tensor():
    stencil = """
    xnumel = 1000
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tmp1 = tl.load(in_ptr0 + (1 + x0), xmask)
    tl.store(out_ptr0 + (x0), tmp2, xmask)
"""
    source = triton(stencil, in_ptr0="fp32", out_ptr0="fp32")
    assert kernel_work(source, [f32(1001), f32(1000)]).bytes == 4 * 2001
    assert kernel_work(source, []).bytes == 4 * 3000


def test_a_look_up_moves_what_it_reads_and_says_that_this_is_at_most():
    looked_up = """
    xnumel = 512
    x1 = xindex // 16
    x0 = (xindex % 16)
    x2 = xindex
    tmp0 = tl.load(in_ptr0 + (x1), xmask)
    tmp6 = tl.load(in_ptr1 + (x0 + 16*tmp4), xmask)
    tl.store(out_ptr0 + (x2), tmp6, xmask)
"""
    source = triton(looked_up, in_ptr0="i64", in_ptr1="fp32", out_ptr0="fp32")
    found = kernel_work(source, [Tensor((32,), "int64"), f32(100_000, 16), f32(32, 16)])
    assert (found.bytes, found.bytes_kind) == (8 * 32 + 4 * 512 + 4 * 512, "at_most")


def test_added_atomically_is_read_and_written():
    scattered = """
    xnumel = 512
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tl.atomic_add(out_ptr0 + (tl.broadcast_to(tmp4, [XBLOCK])), tmp0, xmask, sem='relaxed')
"""
    source = triton(scattered, in_ptr0="fp32", out_ptr0="fp32")
    found = kernel_work(source, [f32(512), f32(64)])
    assert (found.bytes, found.bytes_kind) == (4 * (512 + 2 * 64), "at_most")


def test_a_reduction_reads_its_input_once_however_often_it_loops():
    looped = """
    xnumel = 8
    r0_numel = 4096
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    x0 = xindex
    for r0_offset in range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_1 = r0_index
        tmp0 = tl.load(in_ptr0 + (r0_1 + 4096*x0), r0_mask & xmask)
    for r0_offset in range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_1 = r0_index
        tmp5 = tl.load(in_ptr0 + (r0_1 + 4096*x0), r0_mask & xmask)
        tl.store(out_ptr1 + (r0_1 + 4096*x0), tmp6, r0_mask & xmask)
    tl.store(out_ptr0 + (x0), tmp3, xmask)
"""
    source = triton(looped, in_ptr0="fp32", out_ptr0="fp32", out_ptr1="fp16")
    assert kernel_work(source, []).bytes == 4 * 32768 + 4 * 8 + 2 * 32768


def test_the_function_that_a_scan_combines_with_is_not_the_kernel():
    combine = (
        "@triton.jit\ndef _triton_helper_fn_add0(arg0_0, arg1_0):\n    return arg0_0 + arg1_0\n"
    )
    signature = "'in_ptr0': '*fp32', 'out_ptr0': '*fp32'"
    head = HEAD.replace("SIGNATURE", signature).replace("PARAMS", "in_ptr0, out_ptr0")
    scanned = """
    xnumel = 8
    r0_numel = 4096
    r0_index = r0_offset + tl.arange(0, R0_BLOCK)[:]
    r0_1 = r0_index
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (r0_1 + 4096*x0), None)
    tl.store(out_ptr0 + (r0_1 + 4096*x0), tmp3, None)
"""
    source = read_kernel(combine + head + scanned)
    assert kernel_work(source, []).bytes == 2 * 4 * 32768


def test_symbolic_sizes_take_the_tensors_of_the_launch():
    dynamic = """
    x0 = (xindex % ks0)
    x2 = xindex
    tmp0 = tl.load(in_ptr0 + (x2), xmask)
    tmp1 = tl.load(in_ptr1 + (x0), xmask)
    tl.store(out_ptr0 + (x2), tmp2, xmask)
"""
    source = triton(dynamic, in_ptr0="fp32", in_ptr1="fp32", out_ptr0="fp32")
    launched = [f32(33, 512), f32(512), f32(33, 512)]
    assert kernel_work(source, launched).bytes == 4 * (2 * 33 * 512 + 512)
    assert kernel_work(source, []) is None


def test_workspaces_and_semaphores_are_not_the_users_bytes():
    body = """
    xnumel = 64
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tl.store(ws_ptr + (x0), tmp0, xmask)
    tl.store(out_ptr0 + (x0), tmp1, xmask)
"""
    names = {"in_ptr0": "fp32", "out_ptr0": "fp32", "ws_ptr": "u8", "semaphores_ptr": "i32"}
    assert kernel_work(triton(body, **names), []).bytes == 4 * 128


def test_a_gemm_template_moves_whole_tensors_and_counts_its_batch():
    body = """
    A = arg_A
    B = arg_B
    M = 32
    N = 64
    K = 16
    a = tl.load(A + (xindex))
    tl.store(out_ptr0 + (tl.broadcast_to(xindex, [BLOCK_M, BLOCK_N])), acc, mask)
"""
    source = triton(body, arg_A="fp16", arg_B="fp16", out_ptr0="fp16")
    tensors = [Tensor(d, "float16") for d in ((4, 32, 16), (4, 16, 64), (4, 32, 64))]
    found = kernel_work(source, tensors)
    assert found.flops == 2 * 4 * 32 * 64 * 16
    assert found.bytes == 2 * 4 * (512 + 1024 + 2048)
    assert kernel_work(source, []) is None


CPP = """
extern "C"  void  kernel(float* in_out_ptr0,
                       const float* in_ptr0,
                       const bfloat16* in_ptr1,
                       float* out_ptr1,
                       const int64_t ks0)
{
    auto out_ptr0 = in_out_ptr0;
    {
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(HIGH); x0+=static_cast<int64_t>(1L))
        {
            for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(512L); x1+=static_cast<int64_t>(16L))
            {
                auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + 512L*x0), static_cast<int64_t>(16));
                auto tmp1 = at::vec::Vectorized<bfloat16>::loadu(in_ptr1 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
                tmp2.store(out_ptr1 + static_cast<int64_t>(x1 + 512L*x0));
            }
            in_out_ptr0[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0);
        }
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(HIGH); x0+=static_cast<int64_t>(16L))
        {
            auto tmp3 = at::vec::Vectorized<float>::loadu(out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
            tmp3.store(in_out_ptr0 + static_cast<int64_t>(x0));
        }
    }
}
"""  # noqa: E501


def test_generated_cpp_is_read_by_its_loops():
    source = read_kernel(CPP.replace("HIGH", "33L"))
    assert [p.dtype for p in source.pointers] == ["float32", "float32", "bfloat16", "float32"]
    assert kernel_work(source, []).bytes == 4 * 33 * 512 * 2 + 2 * 512 + 4 * 33
    dynamic = read_kernel(CPP.replace("HIGH", "ks0"))
    assert kernel_work(dynamic, []) is None


def test_one_buffer_that_comes_twice_counts_once():
    unused = """
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr1)
{
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(64L); x0+=static_cast<int64_t>(1L))
    {
        auto tmp0 = out_ptr1[static_cast<int64_t>(x0)];
        out_ptr1[static_cast<int64_t>(x0)] = tmp1;
    }
}
"""  # noqa: E501
    assert kernel_work(read_kernel(unused), [f32(64), f32(64)]).bytes == 4 * 2 * 64
    renamed = unused.replace("{\n    for", "{\n    auto in_ptr0 = out_ptr1;\n    for")
    renamed = renamed.replace("tmp0 = out_ptr1", "tmp0 = in_ptr0")
    assert kernel_work(read_kernel(renamed), [f32(64), f32(64)]).bytes == 4 * 2 * 64
    opaque = unused.replace("tmp0 = out_ptr1[static_cast<int64_t>(x0)]", "tmp0 = look(in_ptr0)")
    assert kernel_work(read_kernel(opaque), [f32(32), f32(64)]).bytes == 4 * (32 + 64)


@pytest.mark.parametrize(
    "text", ["", "def f(", "void kernel(" + "float* a, " * 5000, "tl.load(" * 999]
)
def test_other_text_is_no_kernel(text):
    assert read_kernel(text) is None


LOOKED_UP = """
@triton.jit
def triton_poi_fused_0(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 64000
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    x1 = (xindex % 16)
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tmp1 = tl.where(tmp0 < 0, tmp0 + 600, tmp0)
    tl.device_assert(((0 <= tmp1) & (tmp1 < 600)) | ~(xmask), "index out of bounds: 0 <= tmp1 < 600")
    tmp2 = tl.load(in_ptr1 + (tmp1), xmask)
    tmp3 = libdevice.lgamma(tmp2)
    tmp4 = tl.load(in_ptr2 + (x1), xmask)
    tmp5 = tl_math.sin(tmp4)
    tmp6 = libdevice.pow(tmp3 * tmp5, tmp0)
    tl.store(out_ptr0 + (x0), tmp6, xmask)
"""  # noqa: E501


def test_triton_computes_again_what_it_looks_up_and_broadcasts():
    found = {one.function: one for one in repeated_in_triton(LOOKED_UP)}
    known = {name: (one.evaluations, one.distinct, one.looked_up) for name, one in found.items()}
    assert known == {"lgamma": (64_000, 600, True), "sin": (64_000, 16, False)}
    unmasked = LOOKED_UP.replace(
        "((0 <= tmp1) & (tmp1 < 600)) | ~(xmask)", "(0 <= tmp1) & (tmp1 < 600)"
    )
    assert repeated_in_triton(unmasked) == repeated_in_triton(LOOKED_UP)
    unchecked = LOOKED_UP.replace("tl.device_assert", "# ")
    assert {one.function for one in repeated_in_triton(unchecked)} == {"sin"}
    assert repeated_in_triton(CPP) == repeated_in_triton("") == []


SHIFTED = """
@triton.jit
def triton_poi_fused_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 4095
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (1 + x0), None)
    tmp1 = tl.load(in_ptr0 + (x0), None)
    tmp2 = tl_math.abs(tmp0)
    tmp3 = tl.full([1], 1.31, tl.float64)
    tmp4 = libdevice.pow(tmp2, tmp3)
    tmp5 = libdevice.sqrt(tmp4)
    tmp6 = tl_math.abs(tmp1)
    tmp7 = libdevice.pow(tmp6, tmp3)
    tmp8 = libdevice.sqrt(tmp7)
    tl.store(out_ptr0 + (x0), tmp5 + tmp8, None)
"""


def test_the_same_formula_of_elements_at_a_distance_is_computed_again():
    found = {one.function: one for one in repeated_in_triton(SHIFTED)}
    assert {name: (x.evaluations, x.distinct, x.formulas) for name, x in found.items()} == {
        "pow": (8190, 4095, 1),
        "sqrt": (8190, 4095, 1),
    }
    for other in ("(in_ptr1 + (x0)", "(in_ptr0 + (2*x0)"):  # other values
        assert repeated_in_triton(SHIFTED.replace("(in_ptr0 + (x0)", other)) == []
    assert repeated_in_triton(SHIFTED.replace("(1 + x0)", "(x0)")) == []  # the same once more


def test_a_value_of_one_dimension_is_computed_for_that_dimension_alone():
    tile = LOOKED_UP.replace("xnumel = 64000", "xnumel = 16\n    r0_numel = 4000")
    tile = tile.replace("x1 = (xindex % 16)", "r0_1 = r0_index\n    x1 = xindex")
    tile = tile.replace("in_ptr0 + (x0)", "in_ptr0 + (r0_1 + 4000*x0)")
    assert [one.function for one in repeated_in_triton(tile)] == ["lgamma"]


def test_each_program_of_a_reduction_computes_what_differs_along_it():
    rows = LOOKED_UP.replace("xnumel = 64000", "xnumel = 16\n    r0_numel = 4000")
    rows = rows.replace("x1 = (xindex % 16)", "r0_1 = r0_index")
    rows = rows.replace("in_ptr2 + (x1)", "in_ptr2 + (r0_1)")
    found = {one.function: one for one in repeated_in_triton(rows, programs=16)}
    assert (found["sin"].evaluations, found["sin"].distinct) == (16 * 4000, 4000)
    assert "sin" not in {one.function for one in repeated_in_triton(rows)}


JOINED = """
@triton.jit
def triton_poi_fused_cat_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 64000
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    x0 = (xindex % 64)
    x1 = xindex // 64
    x2 = xindex
    tmp0 = x0
    tmp1 = tl.full([1], 16, tl.int64)
    tmp2 = tmp0 < tmp1
    tmp3 = tl.load(in_ptr0 + (16*x1 + (x0)), tmp2, eviction_policy='evict_last', other=0.0)
    tmp4 = libdevice.pow(tmp3, 2.5)
    tmp5 = tl.full(tmp4.shape, 0.0, tmp4.dtype)
    tmp6 = tl.where(tmp2, tmp4, tmp5)
    tmp7 = tmp0 >= tmp1
    tmp8 = tl.full([1], 64, tl.int64)
    tmp9 = tmp0 < tmp8
    tmp10 = tmp7 & tmp9
    tmp11 = tl.load(in_ptr1 + (48*x1 + ((-16) + x0)), tmp10, eviction_policy='evict_last', other=0.0)
    tmp12 = tl_math.exp(tmp11)
    tmp13 = tl.where(tmp10, tmp12, tmp5)
    tmp14 = tl.where(tmp2, tmp6, tmp13)
    tmp15 = tl_math.sin(tmp14)
    tl.store(out_ptr0 + (x2), tmp15, None)
"""  # noqa: E501


def test_each_part_of_a_joined_tensor_is_computed_at_all_its_elements():
    found = {one.function: one for one in repeated_in_triton(JOINED)}
    known = {name: (one.evaluations, one.distinct, one.parts) for name, one in found.items()}
    assert known == {"pow": (64_000, 16_000, True), "exp": (64_000, 48_000, True)}


@pytest.mark.parametrize(
    ("index", "places"),
    [("(tmp1)", 600), ("(x1 + 16*tmp1)", 9600), ("(tl.broadcast_to(tmp1, [XBLOCK]))", 600)],
)
def test_atomic_additions_and_the_places_that_they_meet_at(index, places):
    store = "tl.store(out_ptr0 + (x0), tmp6, xmask)"
    added = LOOKED_UP.replace(
        store, f"tl.atomic_add(out_ptr0 + {index}, tmp6, xmask, sem='relaxed')"
    )
    assert additions(added) == Additions(64_000, places)
    assert additions(LOOKED_UP) is None
    assert additions(added.replace("tl.device_assert", "# ")) is None


def test_numbers_that_a_triton_kernel_takes_as_float64():
    meta = "triton_meta={'signature': {'x_ptr': '*fp64', 'eps': 'fp64', 'B': 'constexpr'"
    body = "@triton.jit\ndef own(x_ptr, eps, B: tl.constexpr):\n    kinds = {'no': 'fp64'}\n"
    assert float64_arguments(f"{meta}}}}}\n{body}") == ["eps"]
    assert float64_arguments(body) == []


LONG_ROW = """
@triton_heuristics.reduction(
    size_hints={'x': 1, 'r0_': 128},
)
@triton.jit
def triton_red_fused_sum_0(in_ptr0, out_ptr0, xnumel, r0_numel, R0_BLOCK : tl.constexpr):
    xnumel = 1
    rnumel = r0_numel
    r0_index = r0_offset + r0_base
"""


def test_a_reduction_of_a_symbolic_size_has_it_from_its_launch():
    assert reduction(LONG_ROW, ["", "", "1", "233411"]) == Reduction(233_411, 128)
    assert reduction(LONG_ROW, ["", ""]) is None
    static = LONG_ROW.replace("rnumel = r0_numel", "r0_numel = 4096")
    assert reduction(static, []) == Reduction(4096, 128)
    before = static.replace("r0_numel", "rnumel").replace("'r0_': 128", "'r': 128")
    assert reduction(before, []) == Reduction(4096, 128)


@pytest.mark.parametrize("source", ["", LOOKED_UP, CPP, "@triton.jit\ndef f(rnumel):\n"])
def test_what_reduces_nothing_or_an_unknown_size_is_no_reduction(source):
    assert reduction(source, ["x"]) is None


HASHED = """
'signature': {'in_ptr0': '*i64', 'in_ptr1': '*i64', 'in_ptr2': '*i32', 'out_ptr0': '*i64', 'xnumel': 'i32'}
@triton.jit
def triton_poi_fused_remainder_0(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 65536
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), None)
    tmp1 = tl.load(in_ptr1 + (0))
    tmp2 = tl.broadcast_to(tmp1, [XBLOCK])
    tmp3 = (tmp0 % tmp2)
    tl.store(out_ptr0 + (x0), tmp3, None)
"""  # noqa: E501


@pytest.mark.parametrize(
    ("old", "new", "divisions"),
    [
        ("", "", 65536),
        ("(tmp0 % tmp2)", "(tmp0 + 1) // tmp2", 65536),
        ("(tmp0 % tmp2)", "triton_helpers.div_floor_integer(tmp0,  tmp2)", 65536),
        ("tl.load(in_ptr1 + (0))", "tl.full([1], 31, tl.int64)", 0),
        ("tl.load(in_ptr1", "tl.load(in_ptr2", 0),  # 32 bits
        ("tl.broadcast_to(tmp1, [XBLOCK])", "tmp1.to(tl.float32)", 0),
        ("(tmp0 % tmp2)", "tmp0 * tmp2", 0),
    ],
)
def test_divisions_by_a_value_that_is_loaded(old, new, divisions):
    assert long_divisions(HASHED.replace(old, new)) == divisions


TESTS = """
    auto tmp2 = static_cast<int32_t>(87);
    auto tmp3 = tmp1 == tmp2;
    auto tmp4 = at::vec::Vectorized<int32_t>(tmp2);
    auto tmp5 = at::vec::VecMask<int32_t,1>(tmp0 == tmp4);
    auto tmp6 = static_cast<int64_t>(4L);
    auto tmp7 = tmp1 < tmp6;
    auto tmp2 = static_cast<float>(87.0);
    auto tmp8 = tmp9 == tmp2;
    auto tmp9 = tmp8 >= tmp7;
"""


def test_places_that_an_index_is_compared_with():
    assert index_tests(TESTS) == {"==": 2, "<": 1}
    triton = "tmp1 = tl.full([1, 1], 3, tl.int64)\ntmp2 = tmp0 >= tmp1\ntmp4 = tl.full([1], 0.5)\n"
    assert index_tests(triton + "tmp5 = tmp0 < tmp4") == {">=": 1}

"""Least work of library operators, against numbers worked out by hand."""

import json

import pytest

from traceview.derive.limits.operators import operator_work
from traceview.derive.limits.work import read_inputs

F, H, B, I64 = "float", "c10::Half", "c10::BFloat16", "long int"


def work(name, *arguments, kernel=""):
    """Arguments as (dims, type), (dims, type, strides) or a value's text."""
    dims, types, strides, values = [], [], [], []
    for argument in arguments:
        is_value = isinstance(argument, str)
        dims.append([] if is_value else argument[0])
        types.append("Scalar" if is_value else argument[1])
        strides.append(argument[2] if len(argument) > 2 and not is_value else _dense(dims[-1]))
        values.append(argument if is_value else "")
    texts = [json.dumps(found) for found in (dims, types, strides, values)]
    return operator_work(f"aten::{name}", read_inputs(*texts), kernel)


def _dense(dims):
    if any(isinstance(d, list) for d in dims):
        return []
    strides = [1]
    for size in reversed(dims[1:]):
        strides.insert(0, strides[0] * size)
    return strides if dims else []


@pytest.mark.parametrize(
    ("name", "arguments", "moved", "flops"),
    [
        ("mm", [([8, 4], B), ([4, 2], B)], 2 * (32 + 8 + 16), 2 * 8 * 4 * 2),
        # The result that out= brings along is not an input.
        ("mm", [([8, 4], B), ([4, 2], B), ([8, 2], B)], 2 * (32 + 8 + 16), 128),
        ("addmm", [([2], F), ([8, 4], F), ([4, 2], F), "1", "1"], 4 * (2 + 32 + 8 + 16), 128),
        ("bmm", [([3, 8, 4], H), ([3, 4, 2], H)], 2 * 3 * (32 + 8 + 16), 3 * 128),
        ("baddbmm", [([3, 8, 2], H), ([3, 8, 4], H), ([3, 4, 2], H)], 2 * 3 * 72, 3 * 128),
        ("linear", [([5, 8, 4], F), ([2, 4], F), ([2], F)], 4 * (160 + 8 + 80 + 2), 2 * 40 * 8),
        ("_mkl_linear", [([8, 4], F), ([1], F), ([2, 4], F), "", "8"], 4 * (32 + 8 + 16), 128),
        ("mv", [([8, 4], F), ([4], F)], 4 * (32 + 4 + 8), 64),
        ("dot", [([8], F), ([8], F)], 4 * 17, 16),
    ],
)
def test_matrix_products(name, arguments, moved, flops):
    found = work(name, *arguments)
    assert (found.bytes, found.flops, found.bytes_kind) == (moved, flops, "exact")


def test_shapes_that_do_not_fit_give_nothing():
    assert work("mm", ([8, 4], F), ([5, 2], F)) is None
    assert work("mm", ([8, 4], F)) is None
    assert work("bmm", ([3, 8, 4], F), ([2, 4, 2], F)) is None


def test_attention_counts_its_products_and_halves_a_causal_one():
    qkv = [([2, 3, 16, 8], B)] * 3
    rest = ["", "", "", "16", "16", "False", "0."]
    whole = 2 * (2 * 2 * 3 * 16 * 16 * 8)
    moved = 4 * 2 * (2 * 3 * 16 * 8)
    for causal, flops in (("False", whole), ("True", whole // 2)):
        found = work("_cudnn_attention_forward", *qkv, *rest, causal)
        assert (found.bytes, found.flops) == (moved, flops)
    assert work("_cudnn_attention_forward", *qkv).flops is None, "unknown whether causal"


def test_attention_backward_is_five_products_whatever_the_layout():
    # _flash_attention_*: batch, length, heads, width.
    grads = [([2, 16, 3, 8], H)] * 5 + [([2, 3, 16], F)]
    rest = ["", "", "16", "16", "0.", "False"]
    found = work("_flash_attention_backward", *grads, *rest)
    assert found.flops == 5 * 2 * 2 * 3 * 16 * 16 * 8
    assert found.bytes == 8 * 2 * (2 * 16 * 3 * 8) + 4 * 2 * 3 * 16


def test_convolution_needs_its_settings_for_the_output():
    x, weight = ([2, 3, 8, 8], F), ([4, 3, 3, 3], F)
    settings = ["[1, 1]", "[2, 2]", "[1, 1]", "1"]  # padding, stride, dilation, groups
    found = work("cudnn_convolution", x, weight, *settings)
    out = 2 * 4 * 4 * 4
    assert (found.flops, found.flops_kind) == (2 * out * 27, "at_most"), "Winograd needs fewer"
    assert found.bytes == 4 * (2 * 3 * 64 + 4 * 27 + out)
    bare = work("cudnn_convolution", x, weight)
    assert (bare.flops, bare.bytes, bare.bytes_kind) == (None, 4 * (384 + 108), "at_least")


def test_a_convolution_of_one_place_is_a_product_of_the_places_that_it_reads():
    x, weight = ([2, 3, 8, 8], F), ([4, 3, 1, 1], F)
    found = work("cudnn_convolution", x, weight, "[0, 0]", "[2, 2]", "[1, 1]", "1")
    assert (found.flops, found.flops_kind) == (2 * (2 * 4 * 16) * 3, "exact")
    assert found.bytes == 4 * (2 * 3 * 16 + 4 * 3 + 2 * 4 * 16)
    padded = work("cudnn_convolution", x, weight, "[1, 1]", "[2, 2]", "[1, 1]", "1")
    assert padded.flops_kind == "at_most", "nothing is multiplied at the padding"


def test_convolution_backward_does_what_its_mask_asks_for():
    arguments = [
        ([2, 4, 4, 4], F), ([2, 3, 8, 8], F), ([4, 3, 3, 3], F), "[0]", "[2, 2]", "[1, 1]",
        "[1, 1]", "False", "[0, 0]", "1",
    ]  # fmt: skip
    once = 2 * (2 * 4 * 4 * 4) * 27
    assert work("convolution_backward", *arguments, "[True, True, False]").flops == 2 * once
    assert work("convolution_backward", *arguments, "[False, True, False]").flops == once
    assert work("convolution_backward", *arguments, "[True, True, False]").flops_kind == "at_most"


@pytest.mark.parametrize(
    ("name", "arguments", "moved"),
    [
        ("mul", [([64, 32], F), ([32], F)], 4 * (2048 + 32 + 2048)),
        ("mul", [([64, 32], B), ([], "double")], 2 * 4096 + 8),
        ("add", [([64, 32], F), ([64, 32], B), "1"], 2048 * (4 + 2 + 4)),
        ("add", [([4], B), ([4], H)], 4 * (2 + 2 + 4)),  # the two meet in single precision
        ("mul", [([4], I64), ([], "float")], 4 * 8 + 4 + 4 * 4),
        ("add_", [([64, 32], F), ([64, 32], F), "1"], 2048 * 12),
        ("add", [([4], F), ([4], F), "1", ([4], F)], 48),  # with out=
        ("lt", [([64], F), ([64], F)], 64 * (4 + 4 + 1)),
        ("where", [([64], "bool"), ([64], F), ([], F)], 64 + 256 + 4 + 256),
        ("gelu", [([64, 32], H), ""], 2 * 2 * 2048),
        ("gelu_backward", [([64], H), ([64], H), ""], 3 * 128),
        ("copy_", [([64], F), ([64], B), "False"], 64 * 6),
        ("copy_", [([64, 32], F), ([64, 32], F, [0, 1])], 4 * (2048 + 32)),  # expanded source
        ("fill_", [([64], F), "0"], 256),
        ("native_dropout", [([64], F), "0.5", "True"], 64 * (4 + 4 + 1)),
        ("_log_softmax", [([8, 10], B), "1", "False"], 2 * 160),
        ("_softmax", [([8, 10], H), "1", "True"], 160 + 320),  # half to float
        ("native_layer_norm", [([8, 16], H), "[16]", ([16], H), ([16], H), "1e-05"],
         2 * (128 + 32 + 128) + 2 * 8 * 4),
        ("sum", [([8, 16], F), "[0]", "True", ""], 4 * (128 + 16)),
        ("sum", [([8, 16], F), "[-1]", "True", ""], 4 * (128 + 8)),
    ],
)  # fmt: skip
def test_bytes_of_operators_that_move(name, arguments, moved):
    found = work(name, *arguments)
    assert (found.bytes, found.flops, found.bytes_kind) == (moved, None, "exact")


def test_what_is_not_known_is_left_out_and_said():
    assert work("max", ([8, 16], F)).bytes_kind == "at_least"
    found = work("embedding", ([1000, 16], F), ([8], I64), "-1", "False", "False")
    assert (found.bytes, found.bytes_kind) == (8 * 8 + 2 * 8 * 16 * 4, "at_most")
    repeated = work("embedding", ([4, 16], F), ([8], I64))
    assert repeated.bytes == 64 + 8 * 64 + 4 * 64, "no more than the table"
    assert work("nonzero", ([8], F)) is None
    assert operator_work("mylib::mm", read_inputs("[[2, 2]]", '["float"]', None, None)) is None


def test_lists_take_their_element_from_the_kernels_name():
    three = ([[8, 4], [8, 4], [8, 4]], "TensorList")
    cat = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<OpaqueType<2u>, 4, 64, 64>"
    assert work("cat", three, "0", kernel=cat).bytes == 2 * 96 * 2
    assert work("cat", three, "0") is None
    adam = "multi_tensor_apply_kernel<Meta<4>, FusedAdamMathFunctor<float, 4, ADAMW, false>>"
    empty = ([], "TensorList")
    lists = [three, three, three, three, empty, ([[], [], []], "TensorList")]
    assert work("_fused_adamw_", *lists, kernel=adam).bytes == 7 * 96 * 4
    # More than 30 tensors: Kineto wrote no shapes.
    assert work("_fused_adamw_", empty, empty, empty, empty, kernel=adam) is None


@pytest.mark.parametrize(
    "texts",
    [
        (None, None, None, None),
        ("[[4]", '["float"]', None, None),
        ('{"a": 1}', '["float"]', None, None),
        ("[" * 5000, "[" * 5000, None, None),
    ],
)
def test_unreadable_inputs_are_no_inputs(texts):
    assert read_inputs(*texts) is None


def test_absurd_sizes_are_no_tensor():
    inputs = read_inputs("[[-4, 2], [1e9], [99999999999999999999], [4]]", '["float"]', None, None)
    assert inputs.arguments == (None,)
    inputs = read_inputs("[[1000000000, 1000000000]]", '["float"]', None, None)
    assert inputs.arguments == (None,)

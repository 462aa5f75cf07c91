"""Shapes of a library's work from the profiler's Input Dims."""

import pytest

from traceview.derive.origins.work import library_layout, library_shape


@pytest.mark.parametrize(
    ("kind", "operator", "dims", "shape"),
    [
        ("gemm", "aten::mm", "[[4096, 512], [512, 2048]]", "2048x4096, 512"),
        ("gemm", "aten::mm", "[[2048, 512], [512, 4096], [2048, 4096]]", "2048x4096, 512"),
        ("gemm", "aten::addmm", "[[9], [4, 32], [32, 9], [], [], [4, 9]]", "4x9, 32"),
        ("gemm", "aten::addmm", "[[4, 9], [4, 32], [32, 9], [], []]", "4x9, 32"),
        ("gemm", "aten::baddbmm", "[[2, 4, 9], [2, 4, 32], [2, 32, 9]]", "2x4x9, 32"),
        ("convolution", "aten::mkldnn_convolution", "[[4, 3, 8, 8], [16, 3, 3, 3], [16], []]",
         "4x3x8x8, 16x3x3x3"),
        ("gemm", "aten::mm", "[[4, 5], [6, 7]]", None),
        ("gemm", "aten::mm", "[[4, 5]]", None),
        ("gemm", "aten::mm", '[["a", 5], [5, null]]', None),
        ("gemm", "aten::mm", "[[4, 5", None),
        ("gemm", "aten::mm", '{"a": 1}', None),
        ("attention", "aten::x", "[[], [[2, 2]], 7]", None),
        ("gemm", "aten::mm", None, None),
    ],
)  # fmt: skip
def test_shapes(kind, operator, dims, shape):
    assert library_shape(kind, operator, dims) == shape


def test_a_list_of_tensors_has_no_layout():
    """Operands that are lists, as ``torch.cat`` and the foreach operators have them."""
    lists = "[[[8, 4], [8, 4]], [[4, 1], [4, 1]]]"
    assert library_layout("gemm", "aten::_grouped_mm", lists, lists) is None
    mixed = "[[8, 4], [[4, 1], [4, 1]]]"
    strides = "[[4, 1], [[4, 1], [4, 1]]]"
    assert library_layout("gemm", "aten::_grouped_mm", mixed, strides) == "contiguous"

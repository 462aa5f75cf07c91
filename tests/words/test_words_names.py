"""Names as readers know them."""

import pytest

from traceview.words import names

AT = "void at::native::"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("triton_poi_fused_add_mul_relu_0", "triton_poi_fused_add_mul_relu_0"),
        ("nvjet_sm90_tst_128x128_64x6_2x1_v_bz_NNT", "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_NNT"),
        ("Memset (Device)", "Memset (Device)"),
        (
            AT + "elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"
            "sigmoid_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}> >(int)",
            "elementwise_kernel · sigmoid_kernel_cuda",
        ),
        (
            AT + "vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float, "
            "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)",
            "vectorized_elementwise_kernel · MulFunctor",
        ),
        (
            AT + "(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int)",
            "vectorized_layer_norm_kernel<float, float, false>",
        ),
    ],
)
def test_kernel_names(name, short):
    assert names.kernel(name) == short


def test_absurd_kernel_names_take_no_time_and_no_room():
    long = 10**5
    for name in ("a" * long, "void " + "a::" * long + "f<", "f<" + "Functor" * long, "<" * long):
        assert len(names.kernel(name)) <= 2000


def test_categories_are_words():
    assert names.category("idle_launch_bound") == "idle: waiting for launches"
    assert names.category("python") == "Python between operators"
    assert names.what("overhead_cache_lookup") == "overhead: guard checks"
    assert names.what("cudaMalloc") == "cudaMalloc"


def test_an_effect_that_went_the_other_way_is_called_so():
    assert names.effect("launches_saved", -0.2) == "less launching"
    assert names.effect("launches_saved", 0.2) == "more launching"
    assert names.effect("overheads_added", 0.2) == "overhead of compiled calls"
    assert names.effect("overheads_added", -0.2) == "less call overhead"
    assert names.effect("overheads_added", 0.2, "overhead_cache_lookup") == "guard checks"
    assert names.effect("of_a_new_kind", 0.2) == "of a new kind"


def test_unknown_categories_are_readable():
    assert names.category("idle_of_a_new_kind") == "idle: of a new kind"
    assert names.category("generated_pointwise") == "generated pointwise"


def test_a_mark_of_the_profiler_is_no_kernel():
    mark = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    assert names.kernel(mark) == names.what(mark) == mark


def test_a_function_is_named_as_it_is_written_and_code_after_a_break_by_its_line():
    assert names.function("forward") == "forward()"
    after = "torch_dynamo_resume_in_forward_at_25"
    assert names.function(after) == "forward() (resumed after line 25)"
    nested = "torch_dynamo_resume_in_torch_dynamo_resume_in_f_at_3_at_9"
    assert names.function(nested) == "f() (resumed after line 9)"
    assert names.function(None) == "a function"

"""What generated C++ computes one element at a time, read from its source, and why."""

import pytest

from traceview.torchtext.cpp_loops import OneAtATime, one_at_a_time

INT = "static_cast<int64_t>"


def loop(name, high, step=1):
    return (
        f"for(int64_t {name}=static_cast<int64_t>(0L); {name}<static_cast<int64_t>({high}L); "
        f"{name}+=static_cast<int64_t>({step}L))\n{{\n"
    )


def load(index):
    return f"auto tmp0 = in_ptr0[static_cast<int64_t>({index})];\n"


def at(index):
    return loop("x0", 64) + loop("x1", 512) + load(index) + "auto tmp1 = std::tanh(tmp0);\n}\n}\n"


WRAPPED = "512L*x0 + ((static_cast<int64_t>(1L + x1) % static_cast<int64_t>(512L)))"


@pytest.mark.parametrize(
    ("index", "why", "length"),
    [
        (WRAPPED, "wrapped_index", None),
        ("x0 + 64L*x1", "strided", None),
        ("1L + 3L*x1", "few_elements", 3),
        ("x1 + 512L*tmp5", "loaded_index", None),
        ("511L + ((-1L)*x1) + 512L*x0", "reversed_index", None),
        (
            "511L + ((-1L)*std::abs((-509L) + std::abs((-2L) + x1))) + 512L*x0",
            "reversed_index",
            None,
        ),
        (f"512L*x0 + std::min({INT}(9L), {INT}(std::max({INT}(0L), x1)))", "reversed_index", None),
        ("x1 + 512L*std::abs((-2L) + x0)", "not_vectorized", None),
        ("x1 + 512L*x0", "not_vectorized", None),
    ],
)
def test_what_stands_in_the_index_is_the_reason(index, why, length):
    assert one_at_a_time(at(index)) == [OneAtATime(why, ("tanh",), 64 * 512, length)]


@pytest.mark.parametrize(
    ("given", "why"),
    [("const int16_t* in_ptr0", "other_dtype"), ("float* in_ptr0", "not_vectorized")],
)
def test_a_type_without_vectors_is_the_reason_where_the_loop_reads_it(given, why):
    source = f"void kernel({given}, int16_t* out_ptr9)\n" + at("x1 + 512L*x0")
    assert [fact.why for fact in one_at_a_time(source)] == [why]


def test_a_loop_without_functions_that_reads_a_type_without_vectors():
    source = "void kernel(const int16_t* in_ptr0, float* in_ptr1)\n" + loop("x0", 64)
    (fact,) = one_at_a_time(source + load("x0") + "auto tmp1 = c10::convert<float>(tmp0);\n}\n")
    assert (fact.why, fact.functions, fact.evaluations) == ("other_dtype", ("arithmetic",), None)
    assert one_at_a_time(source + load("x0").replace("in_ptr0", "in_ptr1") + "}\n") == []


def test_an_innermost_dimension_of_a_few_elements():
    body = load("x1 + 3L*x0") + "auto tmp1 = std::tanh(tmp0);\nauto tmp2 = std::exp(tmp1);\n"
    (fact,) = one_at_a_time(loop("x0", 1000) + loop("x1", 3) + body + "}\n}\n")
    assert fact == OneAtATime("few_elements", ("tanh", "exp"), 6000, 3)


@pytest.mark.parametrize(
    ("line", "why", "name"),
    [
        ("result[offset_idx] = randn_cpu(tmp0, offset[offset_idx]);", "random", "randn"),
        ("result[i] = normalized_rand_cpu(tmp0, offset[i]);", "random", "rand"),
        ("tmpbuf_out[i] = calc_i1e(tmpbuf0[i]);", "no_vector_form", "i1e"),
        ("auto tmp1 = tmp0.erfinv();", "no_vector_form", "erfinv"),
    ],
)
def test_a_vector_loop_that_calls_a_function_for_each_element(line, why, name):
    (fact,) = one_at_a_time(loop("x0", 4096, 16) + line + "\n}\n")
    assert (fact.why, fact.functions, fact.evaluations) == (why, (name,), 4096)


@pytest.mark.parametrize(
    ("pointer", "line", "name"),
    [
        ("bool* out_ptr0", "tmp2.store(out_ptr0 + {INT}(x0), 16);", "VecMask::store"),
        ("const bool* in_ptr0", "auto tmp0 = at::vec::VecMask<float,1>::from(in_ptr0 + x0, 16);",
         "VecMask::from"),
        ("float* out_ptr0", "tmp2.store(out_ptr0 + {INT}(x0), 16);", None),
    ],
)  # fmt: skip
def test_truth_values_are_converted_one_at_a_time(pointer, line, name):
    source = f"void kernel({pointer})\n" + loop("x0", 4096, 16) + line + "\n}\n"
    found = one_at_a_time(source)
    assert found == ([OneAtATime("masks", (name,), 4096)] if name else [])


def test_vectors_and_loops_without_functions_are_as_they_should_be():
    vectors = loop("x0", 4096, 16) + "auto tmp1 = tmp0.tanh();\n}\n"
    assert one_at_a_time(vectors) == []
    assert one_at_a_time(loop("x0", 4096) + load("(x0 % 7L)") + "}\n") == []


def test_whole_vectors_and_the_rest_are_counted_for_their_own_elements():
    parts = "".join(
        f"if(C10_LIKELY(x0 >= {INT}({low}) && x0 < {INT}({high}L)))\n{{\n{call}\n}}\n"
        for low, high, call in (
            (0, 4096, "auto tmp1 = tmp0.digamma();"),
            (4096, 4099, "auto tmp1 = calc_digamma(tmp0);"),
        )
    )
    (fact,) = one_at_a_time(loop("x0", 4099, 16) + parts + "}\n")
    assert fact == OneAtATime("no_vector_form", ("digamma",), 4099)


def test_a_rest_that_vectors_leave_is_no_reason():
    rest = loop("x0", 15) + load("x0") + "auto tmp1 = std::tanh(tmp0);\n}\n"
    assert one_at_a_time(loop("x0", 4096, 16) + "auto tmp1 = tmp0.tanh();\n}\n" + rest) == []


def test_a_function_outside_of_loops_runs_once():
    assert one_at_a_time("{\nauto tmp1 = std::exp(tmp0);\n}\n") == []


def test_a_symbolic_size_is_not_counted():
    text = loop("x0", 64).replace("64L", "ks0") + "auto tmp1 = randn_cpu(a, b);\n}\n"
    assert one_at_a_time(text) == [OneAtATime("random", ("randn",), None)]


@pytest.mark.parametrize("text", ["", "}" * 99, "{" * 9999, "std::tanh(", loop("x0", 3) * 500])
def test_other_text_gives_nothing(text):
    assert one_at_a_time(text) == []

"""How often generated C++ kernels evaluate a function for the same value: sources cut to size."""

from textwrap import dedent

from traceview.torchtext.cpp_loops import divides_by_sizes
from traceview.torchtext.cpp_values import repeated

INT = "static_cast<int64_t>"
LOADU = "at::vec::Vectorized<float>::loadu"


def loop(name, size, body, step=1):
    head = f"for(int64_t {name}={INT}(0L); {name}<{INT}({size}L); {name}+={INT}({step}L))"
    return f"{head}\n{{\n{body}\n}}"


def within(name, low, high, body):
    return f"if(C10_LIKELY({name} >= {INT}({low}) && {name} < {INT}({high}L)))\n{{\n{body}\n}}"


def function(index, call="tmp0.erf()"):
    load = f"auto tmp0 = {LOADU}(in_ptr0 + {INT}({index}), {INT}(8));"
    return f"{load}\nauto tmp1 = {call};"


def facts(source):
    return [(r.function, r.evaluations, r.distinct) for r in repeated(dedent(source))]


def test_a_row_that_is_broadcast():
    source = loop("x0", 512, loop("x1", 1000, function("x1", "tmp0.pow(tmp9)"), 8))
    assert facts(source) == [("pow", 512_000, 1000)]


def test_a_function_without_vector_code():
    called = function("x1", "tmp0.digamma()")
    (found,) = repeated(loop("x0", 512, loop("x1", 1000, called, 8)))
    assert (found.function, found.evaluations, found.scalar) == ("digamma", 512_000, True)


def test_a_vectors_method_stays_in_the_loop_that_it_does_not_depend_on():
    sums = loop("x0", 400, loop("x1", 3000, function("x0", "tmp0.digamma()")), 16)
    (found,) = repeated(sums)
    assert (found.function, found.evaluations, found.distinct) == ("digamma", 1_200_000, 400)
    assert found.scalar
    assert repeated(sums.replace("tmp0.digamma()", "calc_digamma(tmp0)"))
    assert repeated(sums.replace("tmp0.digamma()", "calc_i1e(tmp0)")) == []


def test_every_element_once_and_the_last_few_separately():
    whole, rest = (within("x1", *r, function("x1 + 1003L*x0")) for r in ((0, 1000), (1000, 1003)))
    assert facts(loop("x0", 64, loop("x1", 1003, f"{whole}\n{rest}", 8))) == []


def test_passes_over_the_same_row_of_two_tensors():
    gain = f"auto tmp2 = {LOADU}(in_ptr1 + {INT}(x1), {INT}(8));"
    load = function("x1 + 32L*x0", "tmp0.exp()").replace("auto tmp1", f"{gain}\nauto tmp1")
    powers = load.replace("tmp0.exp()", "tmp0.pow(tmp2)")
    three = "\n".join(loop("x1", 32, powers, 8) for _ in range(3))
    assert facts(loop("x0", 64, three)) == [("pow", 6144, 2048)]
    parts = "\n".join(within("x1", *part, powers) for part in ((0, 24), (24, 32)))
    assert facts(loop("x0", 64, loop("x1", 32, parts, 8))) == []


def test_a_scalar_call_in_a_loop_over_vectors_is_made_once_for_each():
    call = f"auto tmp0 = in_ptr0[{INT}(128L*x0)];\nauto tmp1 = calc_erfinv(tmp0);"
    whole, rest = (within("x1", *part, call) for part in ((0, 112), (112, 127)))
    assert facts(loop("x0", 64, loop("x1", 127, f"{whole}\n{rest}", 16))) == [("erfinv", 512, 64)]


def test_two_loops_over_one_tensor():
    rows = loop("x0", 64, loop("x1", 32, function("x1 + 32L*x0"), 8))
    columns = loop("x0", 32, loop("x1", 64, function("x0 + 32L*x1")), 8)
    assert facts(rows + "\n" + columns) == [("erf", 4096, 2048)]
    other = columns.replace("in_ptr0", "in_ptr1")
    assert facts(rows + "\n" + other) == []


def test_windows_that_overlap():
    source = loop("x0", 1000, loop("x1", 16, function("x0 + x1", "tmp0.sin()"), 8))
    assert facts(source) == [("sin", 16_000, 1015)]


def test_a_scalar_call_that_the_compiler_moves_out_of_the_inner_loop():
    body = f"auto tmp0 = in_ptr0[{INT}(x0)];\nauto tmp1 = std::sin(tmp0);"
    assert facts(loop("x0", 64, loop("x1", 64, body, 8))) == []
    assert facts(loop("x1", 64, loop("x0", 64, body))) == [("sin", 4096, 64)]


def gathered(name, index):
    return (
        f"auto {name} =\n[&]\n{{\nfor (long x1_inner = 0; x1_inner < {INT}(8); x1_inner++)\n{{\n"
        f"tmpbuf[x1_inner] = in_ptr0[{INT}({index})];\n}}\n"
        f"return {LOADU}(tmpbuf.data(), {INT}(8));\n}}\n()\n;\n"
    )


def test_one_tensor_read_at_shifted_places():
    wrapped = f"64L*x0 + (({INT}(1L + x1 + x1_inner) % {INT}(64L)))"
    upper = f"x1 + 64L*(({INT}(31L + x0) % {INT}(32L)))"
    plain = f"auto tmp2 = {LOADU}(in_ptr0 + {INT}({upper}), {INT}(8));\nauto tmp3 = tmp2.sin();"
    body = f"{gathered('tmp0', wrapped)}auto tmp1 = tmp0.sin();\n{plain}"
    source = loop("x0", 32, loop("x1", 64, body, 8))
    assert facts(source) == [("sin", 4096, 2048)]
    # Of another tensor, or of two places, it is another value each time.
    assert facts(source.replace("in_ptr0 +", "in_ptr1 +")) == []
    more = "tmp2.sin();\nauto tmp4 = tmp0 + tmp2;\nauto tmp5 = tmp4.sin()"
    both = source.replace("tmp2.sin()", more)
    assert facts(both) == [("sin", 4096, 2048)]


def test_a_place_that_is_looked_up_may_be_any():
    body = f"{gathered('tmp0', 'tmp9[x1_inner] + 64L*x0')}auto tmp1 = tmp0.sin();"
    assert facts(loop("x0", 32, loop("x1", 64, body, 8))) == []


def checked(name, size):
    bound = f"0 <= {name} < {size}L"
    return f'TORCH_CHECK((0 <= {name}) & ({name} < {size}L), "index out of bounds: {bound}");'


def test_a_place_that_was_checked_has_as_many_values_as_there_are_elements():
    index = f"auto tmp5 = in_ptr1[{INT}(x0)];\nauto tmp6 = tmp5;\n"
    index += f"auto tmp7 = c10::convert<int64_t>(tmp6);\n{checked('tmp7', 100)}\n"
    body = index + function("x1 + 8L*tmp5", "tmp0.pow(tmp9)")
    source = loop("x0", 5000, loop("x1", 8, body, 8))
    assert facts(source) == [("pow", 40_000, 800)]
    assert all(one.looked_up for one in repeated(source))
    # A second argument of its own for each row: as many values as rows.
    other = body.replace("auto tmp0", f"auto tmp9 = in_ptr2[{INT}(x0)];\nauto tmp0")
    assert facts(loop("x0", 5000, loop("x1", 8, other, 8))) == []
    # More rows than look-ups; and a range that nothing checks.
    assert facts(loop("x0", 50, loop("x1", 8, body, 8))) == []
    assert facts(source.replace("TORCH_CHECK", "")) == []


def test_vectors_of_places_that_were_checked():
    index = "auto tmp5 =\n[&]\n{\ntmp4.store(tmpbuf.data());\nreturn tmpbuf;\n}\n()\n;\n"
    index += gathered("tmp6", "").replace(f"in_ptr0[{INT}()]", f"{INT}(tmp5[x1_inner])")
    index += checked("tmp6", 100) + "\n"
    body = f"{index}{gathered('tmp0', 'tmp5[x1_inner]')}auto tmp1 = tmp0.erf();"
    assert facts(loop("x1", 4000, body, 8)) == [("erf", 4000, 100)]
    # Another table for each row of a matrix.
    rows = body.replace("(tmp5[x1_inner])];", "(tmp5[x1_inner] + 100L*x0)];")
    assert facts(loop("x0", 40, loop("x1", 4000, rows, 8))) == [("erf", 160_000, 4000)]


def test_sums_and_random_numbers_are_different_every_time():
    body = "auto tmp0 = randn_cpu(in_ptr0[{INT}(0L)], x1);\nauto tmp1 = std::exp(tmp0);"
    assert facts(loop("x0", 64, loop("x1", 64, body))) == []
    assert facts(loop("x0", 64, "auto tmp0 = tmp_acc0;\nauto tmp1 = std::exp(tmp0);")) == []
    several = "auto tmp0 =\n[&]\n{\nreturn tmpbuf;\n}\n()\n;\nauto tmp1 = tmp0.exp();"
    assert facts(loop("x0", 64, loop("x1", 64, several))) == []


def test_loops_of_symbols_are_not_counted():
    source = loop("x0", "ks0", loop("x1", 1000, function("x1"), 8))
    assert facts(source.replace("ks0L", "ks0")) == []


def test_divisions_by_symbolic_sizes():
    place = "    auto tmp0 = in_ptr0[{}(x1 + ks1*(({}(x0) % {}(ks0))))];".format(*[INT] * 3)
    assert divides_by_sizes(place)
    assert not divides_by_sizes(place.replace("ks0", "16L").replace("ks1", "16L"))
    # The loop's own end is calculated once.
    end = f"for(int64_t x0={INT}(0L); x0<{INT}(c10::div_floor_integer(ks1, 4L)); x0+={INT}(1L))"
    assert not divides_by_sizes(end)

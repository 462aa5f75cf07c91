"""How the instructions of generated C++ kernels divide: sources cut to size."""

from traceview.torchtext.cpp_work import work_of

INT = "static_cast<int64_t>"


def loop(name, size, body, step=1):
    head = f"for(int64_t {name}={INT}(0L); {name}<{INT}({size}L); {name}+={INT}({step}L))"
    return f"{head}\n{{\n{body}\n}}"


def test_vectors_count_a_turn_and_functions_as_several():
    body = "auto tmp1 = tmp0 + tmp0;\nauto tmp2 = tmp1.sin();"
    work = work_of(loop("x0", 64, loop("x1", 128, body, 16)))
    assert (work.instructions, work.single) == (64 * 8 * 21, 0)
    assert work.functions == {"sin": 64 * 8}


def test_what_works_on_one_element_at_a_time():
    vector = loop("x0", 1024, "auto tmp1 = tmp0 + tmp0;", 16)
    scalar = loop("x0", 1024, "auto tmp1 = std::tanh(tmp0);")
    work = work_of(f"{vector}\n{scalar}")
    assert (work.instructions, work.single) == (64 + 20 * 1024, 20 * 1024)


def test_a_buffer_that_is_filled_from_places_in_the_data():
    fill = (
        f"for (long x0_inner = 0; x0_inner < {INT}(16); x0_inner++)\n{{\n"
        f"tmpbuf[x0_inner] = in_ptr0[{INT}(tmp3[x0_inner] + 6L*x0)];\n}}"
    )
    work = work_of(loop("x0", 1024, f"auto tmp1 = tmp0 + tmp0;\n{fill}", 16))
    assert (work.looked_up, work.single, work.instructions) == (1024, 1024, 1024 + 64)


def test_the_last_elements_run_once():
    body = "auto tmp1 = tmp0.exp();"
    whole, rest = (
        f"if(C10_LIKELY(x0 >= {INT}({low}) && x0 < {INT}({high}L)))\n{{\n{body}\n}}"
        for low, high in ((0, 96), (96, 100))
    )
    assert work_of(loop("x0", 100, f"{whole}\n{rest}", 16)).functions == {"exp": 7}


def test_sizes_that_are_symbols():
    assert work_of(loop("x0", 64, "auto tmp1 = tmp0.exp();").replace("(64L)", "(ks0)")) is None
    assert work_of("@triton.jit\ndef triton_(): pass") is None
